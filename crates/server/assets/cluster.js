// From what a member of a cluster says (/admin/node, /admin/ring-change, /metrics) to the rows of the cluster view. Pure.

import { sum } from "./metrics.js";
import { quantile } from "./history.js";
import { count, duration } from "./format.js";

const SYSTEM = /^system(_|$)/;

// The keyspace whose ownership is shown: the wanted one, or the first of users, or the first of all; null if none is spread over nodes.
export function keyspaceOf(node, wanted) {
  const all = Object.keys(node.shares).sort();
  return all.find((name) => name === wanted) ?? all.find((name) => !SYSTEM.test(name)) ?? all[0] ?? null;
}

// A row for each member, this node first.
export function members(node, keyspace) {
  const shares = node.shares[keyspace] ?? {};
  const rows = node.members.map((member) => ({
    ...member,
    isSelf: member.host_id === node.host_id,
    condition: `${member.is_up ? "up" : "down"}${member.state === "normal" ? "" : `, ${member.state}`}`,
    owns: keyspace ? shares[member.host_id] ?? 0 : null,
    token_count: member.tokens.length,
  }));
  return rows.sort((a, b) => b.isSelf - a.isSelf || (a.address < b.address ? -1 : 1));
}

// The slices of the ring: {end, share of all tokens, replicas}, in the order of their tokens.
export function slices(node, keyspace) {
  const all = node.ranges[keyspace] ?? [];
  // Doubles suffice for a share of 2^64 tokens.
  const ends = all.map(([end]) => Number(end));
  return all.map(([end, replicas], place) => {
    const width = place ? ends[place] - ends[place - 1] : ends[0] - ends[ends.length - 1] + 2 ** 64;
    return { end, share: all.length === 1 ? 1 : width / 2 ** 64, replicas: replicas.map((at) => node.members[at]?.address ?? "?") };
  });
}

// Tablets with the records that this node has not applied, the furthest behind first.
export function tablets(metrics) {
  const rows = (metrics.get("ilion_cluster_tablet_lag_records") ?? []).map((sample) => ({ tablet: Number(sample.labels.tablet), lag: sample.value }));
  return rows.sort((a, b) => b.lag - a.lag || a.tablet - b.tablet);
}

const STEPS = { raise: "until the log has the no-ops of the read", apply: "until this node has applied them" };

// What reads waited for, by step: times in nanoseconds, null if nothing waited.
export function barriers(metrics) {
  const name = "ilion_cluster_barrier_seconds";
  const of = (part, step) => (metrics.get(`${name}_${part}`) ?? []).filter((sample) => sample.labels.step === step);
  return Object.entries(STEPS).map(([step, what]) => {
    const cumulated = of("bucket", step).map((sample) => ({ bound: sample.labels.le === "+Inf" ? Infinity : Number(sample.labels.le) * 1e9, value: sample.value }));
    cumulated.sort((a, b) => a.bound - b.bound);
    const counts = cumulated.map((bucket, at) => bucket.value - (at ? cumulated[at - 1].value : 0));
    const bounds = cumulated.map((bucket) => bucket.bound).filter(Number.isFinite);
    const waits = of("count", step)[0]?.value ?? 0;
    return {
      what, waits,
      mean: waits ? ((of("sum", step)[0]?.value ?? 0) * 1e9) / waits : null,
      p50: quantile(bounds, counts, 0.5), p99: quantile(bounds, counts, 0.99),
    };
  });
}

// "kafka://b1:9092,b2:9092/name" -> the brokers that the node was told of, and the name of the cluster's topics.
export function logOf(setting) {
  const found = /^kafka:\/\/([^/]*)\/(.*)$/.exec(setting ?? "");
  return found ? { brokers: found[1].split(","), topics: found[2] } : { brokers: [], topics: "" };
}

// What the node and the brokers exchanged.
export function exchanges(metrics) {
  const of = (name) => sum(metrics, `ilion_cluster_${name}_total`);
  return [
    { what: "requests with records, from this node to brokers", good: of("log_produce_requests"), failed: of("log_produce_errors") },
    { what: "requests for records", good: of("log_fetch_requests"), failed: of("log_fetch_errors") },
    { what: "records that the log has acknowledged", good: of("appends"), failed: of("appends_failed") },
    { what: "records that were sent again", good: of("appends_repeated"), failed: null },
    { what: "records that this node has applied", good: of("applied_records"), failed: null },
  ];
}

const some = (number, one, several) => `${count(number)} ${number === 1 ? one : several}`;

// The state of the cluster in words: [{level: "bad" | "warn" | "good", text}], the worst first.
export function findings(node, { change, has_left: hasLeft }, metrics) {
  const found = [];
  const say = (level, text) => found.push({ level, text });
  if (hasLeft) say("bad", "This node has left the cluster.");
  const down = node.members.filter((member) => !member.is_up);
  for (const member of down) say("bad", `${member.address} (${member.rack}) is down.`);
  const halted = sum(metrics, "ilion_cluster_tablets_halted");
  if (halted) say("bad", `This node applies the records of ${some(halted, "tablet", "tablets")} no more: its log has the reason.`);
  const disputed = sum(metrics, "ilion_cluster_disputed_blocks_total");
  if (disputed) say("bad", "The data of replicas differs, and none of them has a majority: the log of this node says where.");
  for (const member of node.members.filter((one) => one.is_up && one.silence > 0.5)) {
    say("warn", `${member.address} is silent for ${Math.round(100 * member.silence)} % of the time after which it is taken for down.`);
  }
  const versions = new Set(node.members.filter((member) => member.is_up).map((member) => member.schema_version));
  if (versions.size > 1) say("warn", `The nodes that are up have ${versions.size} versions of the schema.`);
  for (const member of node.members.filter((one) => one.tablets_behind > 0)) {
    say("warn", `${member.address} may not answer for ${some(member.tablets_behind, "tablet", "tablets")} yet.`);
  }
  if (change) {
    const copying = change.copying.map((one) => `${one.address}${one.is_ready ? " (has all)" : ""}`).join(", ");
    say("warn", `Under way: ${change.what}, ${some(change.slices, "slice", "slices")}${copying ? `; data goes to ${copying}` : ""}.`);
  }
  if (!found.some((one) => one.level === "bad") && versions.size <= 1) {
    say("good", `All ${some(node.members.length, "node is", "nodes are")} up and have the same schema.`);
  }
  return found;
}

// For the overview, from the metrics alone: null on a single node.
export function glance(metrics) {
  const all = metrics.get("ilion_cluster_members");
  if (!all) return null;
  const down = all.filter((sample) => sample.labels.up === "false").reduce((total, sample) => total + sample.value, 0);
  const total = sum(metrics, "ilion_cluster_members");
  const lag = sum(metrics, "ilion_cluster_lag_records");
  const up = down ? `${some(down, "is", "are")} down` : "all are up";
  return { level: down ? "bad" : "good", text: `A node of a cluster of ${count(total)}: ${up}; this one has ${some(lag, "record", "records")} left to apply.` };
}

// "up 3 h 20 min" of the node that answers.
export const upFor = (node) => `up ${duration(node.uptime_secs)}`;
