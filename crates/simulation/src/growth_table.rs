//! Prints how the throughput of a cluster grows, a line for each number of nodes:
//! `… growth [--nodes 3,6,24,100] [--load writes|reads-one|reads-quorum|mixed] [--in-flight 512] [--brokers-each 0.25] [--partitions-each 4 | --partitions N]
//! [--tablets-each 40] [--cores 2] [--millis 200] [--one-machine]`. `-each`: for each node.

use ilion_simulation::{Costs, Grown, Load, Setting, Shape, grow};

const USAGE: &str = "usage: growth [--nodes 3,6,24,100] [--load writes|reads-one|reads-quorum|mixed] [--in-flight N] [--brokers-each N] \
                     [--partitions-each N | --partitions N] [--tablets-each N] [--cores N] [--millis N] [--one-machine]";

struct Wanted {
    nodes: Vec<u32>,
    brokers_each: f64,
    partitions_each: f64,
    /// Instead of `partitions_each`.
    partitions: Option<u32>,
    tablets_each: f64,
    setting: Setting,
}

fn wanted(mut arguments: impl Iterator<Item = String>) -> Result<Wanted, String> {
    let mut wanted = Wanted {
        nodes: vec![3, 6, 24, 100],
        brokers_each: 0.25,
        partitions_each: 4.0,
        partitions: None,
        tablets_each: 40.0,
        setting: Setting {
            load: Load::Writes,
            in_flight: 512,
            cores: 2,
            is_one_machine: false,
            warm_millis: 100,
            millis: 200,
        },
    };
    while let Some(argument) = arguments.next() {
        if argument == "--one-machine" {
            wanted.setting.is_one_machine = true;
            continue;
        }
        let value = arguments
            .next()
            .ok_or_else(|| format!("{argument} needs a value; {USAGE}"))?;
        let number = || {
            value
                .parse::<f64>()
                .ok()
                .filter(|number| *number > 0.0 && *number < 1e6)
        };
        let needs_number = || format!("{argument} needs a number; {USAGE}");
        match argument.as_str() {
            "--nodes" => {
                let nodes: Option<Vec<u32>> = value.split(',').map(|nodes| nodes.parse().ok()).collect();
                wanted.nodes = nodes
                    .filter(|nodes| nodes.iter().all(|nodes| *nodes >= 3))
                    .ok_or_else(needs_number)?;
            }
            "--load" => {
                wanted.setting.load = match value.as_str() {
                    "writes" => Load::Writes,
                    "reads-one" => Load::ReadsOfOne,
                    "reads-quorum" => Load::QuorumReads,
                    "mixed" => Load::Mixed,
                    _ => return Err(format!("there is no load {value}; {USAGE}")),
                }
            }
            "--in-flight" => wanted.setting.in_flight = number().ok_or_else(needs_number)? as u32,
            "--brokers-each" => wanted.brokers_each = number().ok_or_else(needs_number)?,
            "--partitions-each" => wanted.partitions_each = number().ok_or_else(needs_number)?,
            "--partitions" => wanted.partitions = Some(number().ok_or_else(needs_number)? as u32),
            "--tablets-each" => wanted.tablets_each = number().ok_or_else(needs_number)?,
            "--cores" => wanted.setting.cores = number().ok_or_else(needs_number)? as usize,
            "--millis" => wanted.setting.millis = number().ok_or_else(needs_number)? as u64,
            _ => return Err(format!("{argument} is not known; {USAGE}")),
        }
    }
    Ok(wanted)
}

/// Prints the table.
pub fn print(arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let wanted = wanted(arguments)?;
    println!(
        "| nodes | brokers | partitions | requests/s | of linear | p50, us | p99, us | nodes busy; most | brokers busy; most | most tablets | brokers of a node | \
         reads times | produce, fetch, end |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let mut first: Option<f64> = None;
    for nodes in wanted.nodes {
        let of_each = |each: f64| (f64::from(nodes) * each).round() as u32;
        let tablets = of_each(wanted.tablets_each).max(nodes);
        let shape = Shape {
            nodes,
            brokers: of_each(wanted.brokers_each).max(3),
            tablets,
            partitions: wanted
                .partitions
                .unwrap_or(of_each(wanted.partitions_each))
                .clamp(1, tablets),
        };
        let grown = grow(shape, wanted.setting, &Costs::MEASURED, 1).map_err(|halt| halt.to_string())?;
        let each = grown.per_second / f64::from(nodes);
        let linear = *first.get_or_insert(each);
        print_line(shape, &grown, each / linear);
    }
    Ok(())
}

fn print_line(shape: Shape, grown: &Grown, of_linear: f64) {
    let [p50, p99] = grown.waits_micros;
    let percent = |[mean, max]: [f64; 2]| format!("{:.0} %; {:.0} %", mean * 100.0, max * 100.0);
    let [produce, fetch, end] = grown.to_brokers;
    println!(
        "| {} | {} | {} | {:.0} | {:.0} % | {p50:.0} | {p99:.0} | {} | {} | {:.2} | {:.1} | {:.1} | {produce:.3}, {fetch:.3}, {end:.3} |",
        shape.nodes,
        shape.brokers,
        shape.partitions,
        grown.per_second,
        of_linear * 100.0,
        percent(grown.nodes_busy),
        percent(grown.brokers_busy),
        grown.most_tablets,
        grown.brokers_of_node,
        grown.reads_times,
    );
}
