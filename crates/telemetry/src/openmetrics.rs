//! Converts metrics from the text format of OpenMetrics, as in `/metrics`, to OTLP.
//!
//! Names and units stay, but suffixes of single samples (`_total`, `_bucket` and so on) are removed: a collector that writes for
//! Prometheus adds them again. Counters and histograms are cumulative since the start of the node; all else is a gauge. Labels become
//! attributes.

use std::collections::BTreeMap;

use crate::messages::{
    CUMULATIVE, Gauge, Histogram, HistogramPoint, KeyValue, Metric, MetricData, Number, NumberPoint, Sum,
};

/// The times of all points.
#[derive(Clone, Copy)]
pub(crate) struct PointTimes {
    pub started_unix_nanos: u64,
    pub now_unix_nanos: u64,
}

/// Converts a text. Leaves out lines that are no metrics.
pub(crate) fn metrics_of(text: &str, times: PointTimes) -> Vec<Metric> {
    let mut metrics = Vec::new();
    let mut family = Family::default();
    for line in text.lines() {
        match line.strip_prefix("# ") {
            Some(comment) => {
                let mut words = comment.splitn(3, ' ');
                let (keyword, name) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
                if name != family.name {
                    metrics.extend(std::mem::replace(&mut family, Family::named(name)).finish(times));
                }
                let rest = words.next().unwrap_or("");
                match keyword {
                    "HELP" => family.help = unescaped(rest),
                    "TYPE" => family.kind = rest.to_owned(),
                    "UNIT" => family.unit = rest.to_owned(),
                    _ => {}
                }
            }
            None => {
                if let Some(sample) = Sample::parse(line) {
                    family.samples.push(sample);
                }
            }
        }
    }
    metrics.extend(family.finish(times));
    metrics
}

/// A metric with its samples.
#[derive(Default)]
struct Family<'a> {
    name: &'a str,
    help: String,
    kind: String,
    unit: String,
    samples: Vec<Sample<'a>>,
}

struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, String)>,
    value: &'a str,
}

impl<'a> Family<'a> {
    fn named(name: &'a str) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    fn finish(self, times: PointTimes) -> Option<Metric> {
        if self.samples.is_empty() {
            return None;
        }
        let data = match self.kind.as_str() {
            "counter" => MetricData::Sum(Sum {
                points: self.points(times),
                temporality: CUMULATIVE,
                is_monotonic: true,
            }),
            "histogram" => MetricData::Histogram(Histogram {
                points: self.histogram_points(times),
                temporality: CUMULATIVE,
            }),
            _ => MetricData::Gauge(Gauge {
                points: self.points(times),
            }),
        };
        Some(Metric {
            name: self.name.to_owned(),
            unit: unit_of(&self.unit).to_owned(),
            description: self.help,
            data: Some(data),
        })
    }

    fn points(&self, times: PointTimes) -> Vec<NumberPoint> {
        let samples = self
            .samples
            .iter()
            .filter(|sample| !sample.name.ends_with("_created"));
        let points = samples.filter_map(|sample| {
            Some(NumberPoint {
                attributes: sample.attributes(),
                start_unix_nanos: times.started_unix_nanos,
                unix_nanos: times.now_unix_nanos,
                value: Some(number(sample.value)?),
            })
        });
        points.collect()
    }

    fn histogram_points(&self, times: PointTimes) -> Vec<HistogramPoint> {
        // By labels, since the samples of a point need not follow each other.
        let mut points: BTreeMap<String, HistogramPoint> = BTreeMap::new();
        for sample in &self.samples {
            let key = format!("{:?}", sample.labels_but("le"));
            let point = points.entry(key).or_insert_with(|| HistogramPoint {
                attributes: sample.attributes(),
                start_unix_nanos: times.started_unix_nanos,
                unix_nanos: times.now_unix_nanos,
                ..HistogramPoint::default()
            });
            let suffix = sample.name.strip_prefix(self.name).unwrap_or("");
            match suffix {
                "_count" => point.count = count(sample.value),
                "_sum" => point.sum = sample.value.parse().ok(),
                "_bucket" => {
                    let bound = sample.labels.iter().find(|(name, _)| *name == "le");
                    let bound: Option<f64> = bound.and_then(|(_, bound)| bound.parse().ok());
                    point.bounds.extend(bound.filter(|bound| bound.is_finite()));
                    point.bucket_counts.push(count(sample.value));
                }
                _ => {}
            }
        }
        let mut points: Vec<HistogramPoint> = points.into_values().collect();
        for point in &mut points {
            // A bucket of OpenMetrics includes the buckets below it; a bucket of OTLP does not.
            for index in (1..point.bucket_counts.len()).rev() {
                point.bucket_counts[index] =
                    point.bucket_counts[index].saturating_sub(point.bucket_counts[index - 1]);
            }
        }
        points
    }
}

impl<'a> Sample<'a> {
    /// Parses `name{label="value",..} number`.
    fn parse(line: &'a str) -> Option<Self> {
        let name_end = line.find(['{', ' '])?;
        let (name, mut rest) = line.split_at(name_end);
        let mut labels = Vec::new();
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside;
            while !rest.starts_with('}') {
                let (label, after) = rest.split_once("=\"")?;
                let end = end_of_quoted(after)?;
                labels.push((label, unescaped(&after[..end])));
                rest = &after[end + 1..];
                rest = rest.strip_prefix(',').unwrap_or(rest);
            }
            rest = &rest[1..];
        }
        let value = rest.split_whitespace().next()?;
        Some(Self { name, labels, value })
    }

    fn labels_but(&self, left_out: &str) -> Vec<&(&'a str, String)> {
        self.labels.iter().filter(|(name, _)| *name != left_out).collect()
    }

    fn attributes(&self) -> Vec<KeyValue> {
        let labels = self.labels_but("le").into_iter();
        labels.map(|(name, value)| KeyValue::text(*name, value)).collect()
    }
}

/// The offset of the quote that ends a text.
fn end_of_quoted(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(offset, char)| {
        if char == '"' && !is_escaped {
            return Some(offset);
        }
        is_escaped = char == '\\' && !is_escaped;
        None
    })
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            char => out.push(char),
        }
    }
    out
}

/// Parses a number. Whole numbers stay exact.
fn number(text: &str) -> Option<Number> {
    match text.parse() {
        Ok(whole) => Some(Number::Int(whole)),
        Err(_) => text.parse().ok().map(Number::Double),
    }
}

fn count(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

/// The code of a unit in UCUM, which OTLP uses.
fn unit_of(name: &str) -> &str {
    match name {
        "seconds" => "s",
        "bytes" => "By",
        "ratios" | "ratio" => "1",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: PointTimes = PointTimes {
        started_unix_nanos: 1,
        now_unix_nanos: 2,
    };

    #[test]
    fn counters_gauges_and_histograms_keep_their_values() {
        let text = "\
# HELP reads Reads of \\\"files\\\".
# TYPE reads counter
# UNIT reads bytes
reads_total{table=\"a\\\"},b\",keyspace=\"k\"} 7
reads_total{table=\"c\",keyspace=\"k\"} 18446744073709551615
# HELP load Load.
# TYPE load gauge
load 0.25
# HELP wait Waits.
# TYPE wait histogram
# UNIT wait seconds
wait_sum{kind=\"x\"} 1.5
wait_count{kind=\"x\"} 6
wait_bucket{le=\"0.1\",kind=\"x\"} 1
wait_bucket{le=\"1.0\",kind=\"x\"} 4
wait_bucket{le=\"+Inf\",kind=\"x\"} 6
# EOF
";
        let metrics = metrics_of(text, TIMES);
        let names: Vec<(&str, &str)> = metrics
            .iter()
            .map(|m| (m.name.as_str(), m.unit.as_str()))
            .collect();
        assert_eq!(names, [("reads", "By"), ("load", ""), ("wait", "s")]);
        let Some(MetricData::Sum(sum)) = &metrics[0].data else {
            panic!("{:?}", metrics[0])
        };
        assert!(sum.is_monotonic && metrics[0].description == "Reads of \"files\".");
        assert_eq!(sum.points[0].value, Some(Number::Int(7)));
        assert_eq!(sum.points[0].attributes[0], KeyValue::text("table", "a\"},b"));
        assert_eq!(sum.points[1].value, Some(Number::Double(u64::MAX as f64)));
        let Some(MetricData::Histogram(histogram)) = &metrics[2].data else {
            panic!("{:?}", metrics[2])
        };
        let point = &histogram.points[0];
        assert_eq!((point.count, point.sum), (6, Some(1.5)));
        assert_eq!(
            (&point.bucket_counts[..], &point.bounds[..]),
            (&[1, 3, 2][..], &[0.1, 1.0][..])
        );
        assert_eq!(point.attributes, [KeyValue::text("kind", "x")]);
    }

    #[test]
    fn broken_lines_are_left_out() {
        let text = "# TYPE a gauge\na{b=\"\na{b=\"c\"\na\na x\na{b} 1\n\n#\n# \na 1\n";
        let metrics = metrics_of(text, TIMES);
        let Some(MetricData::Gauge(gauge)) = &metrics[0].data else {
            panic!("{metrics:?}")
        };
        assert_eq!(gauge.points.len(), 0);
    }
}
