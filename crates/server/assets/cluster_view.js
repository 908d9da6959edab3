// The cluster view: nodes, slices of the ring, tablets, waits of reads, brokers and other nodes; on a single node, that it is one.

import * as ask from "./ask.js";
import * as metrics from "./metrics.js";
import { barriers, exchanges, findings, keyspaceOf, logOf, members, slices, tablets, upFor } from "./cluster.js";
import { bytes, count, digits, nanos } from "./format.js";
import { bar } from "./steps.js";
import { element, put, refresh, setOrder, table } from "./tables.js";

const DOCS = "https://github.com/ilion-db/ilion/blob/main/docs/cluster.md";
const EVERY_MILLIS = 3000;
const TABLETS_SHOWN = 30;
const at = (id) => document.getElementById(id);
const percent = (value) => `${digits(100 * value)} %`;

let wanted = "";
let asked = -Infinity;

export function enter(values) {
  wanted = values.keyspace ?? "";
  setOrder("cluster", values.sort);
  asked = -Infinity;
}

// `keep` is called with what the address of the view should name, `again` to show it.
export function bind(keep, again) {
  at("cluster-keyspace").addEventListener("change", (event) => {
    wanted = event.target.value;
    keep({ keyspace: wanted });
    asked = -Infinity;
    again();
  });
}

// Asks the node, and through it the other members, at most every few seconds.
export async function load(now, status) {
  if (now - asked < EVERY_MILLIS) return;
  asked = now;
  const node = await ask.json("/admin/node");
  const isMember = node.members.length > 0;
  at("cluster-single").hidden = isMember;
  at("cluster-parts").hidden = !isMember;
  if (isMember) await ofMember(node);
  else if (status.is_of_cluster) refresh(at("cluster-single"), element("p", {}, "This node has not joined its cluster yet."));
  else single(node);
}

function single(node) {
  refresh(at("cluster-single"),
    element("p", {}, "This node is a single one: it holds all data and needs no other service."),
    element("dl", { class: "facts" }, ...facts([["host id", node.host_id], ["data center", node.data_center], ["rack", node.rack],
      ["tokens", count(node.tokens.length)], ["load", bytes(node.load_bytes)], ["uptime", upFor(node)]])),
    element("p", {}, "Several nodes over a log in Apache Kafka are a cluster: ",
      element("a", { href: DOCS, rel: "noreferrer", target: "_blank" }, "when one node is enough, and a cluster in ten minutes (docs/cluster.md)"), "."));
}

const facts = (pairs) => pairs.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value)));

async function ofMember(node) {
  const [ring, found, settings] = await Promise.all([
    ask.json("/admin/ring-change"), ask.text("/metrics").then(metrics.parse), ask.json("/admin/settings"),
  ]);
  const keyspace = keyspaceOf(node, wanted);
  offer(Object.keys(node.shares).sort(), keyspace);
  put(at("cluster-findings"), ...findings(node, ring, found).map((one) => element("li", { class: one.level }, one.text)));
  nodes(node, keyspace);
  refresh(at("cluster-slices"), table("cluster-slices", keyspace ? `Slices of the ring and their replicas, for ${keyspace}` : "Slices of the ring", [
    { name: "up to token", of: (row) => row.end, number: true },
    { name: "share of the ring", of: (row) => row.share, show: percent, number: true },
    { name: "replicas", of: (row) => row.replicas.join(", ") },
  ], slices(node, keyspace)));
  ofTablets(found);
  const times = ["mean", "p50", "p99"].map((name) => ({ name, of: (row) => row[name], show: nanos, number: true, missing: "-" }));
  refresh(at("cluster-barriers"), table("cluster-barriers", "What reads waited for, since the start of this node", [
    { name: "wait", of: (row) => row.what }, { name: "how often", of: (row) => row.waits, show: count, number: true }, ...times,
  ], barriers(found)));
  brokers(found, settings);
  await others();
}

function offer(keyspaces, chosen) {
  const select = at("cluster-keyspace");
  const known = [...select.options].map((option) => option.value);
  if (known.join() !== keyspaces.join()) put(select, ...keyspaces.map((name) => element("option", { value: name }, name)));
  if (chosen) select.value = chosen;
}

function nodes(node, keyspace) {
  const optional = { number: true, missing: "?" };
  refresh(at("cluster-nodes"), table("cluster", `Nodes of ${node.cluster_name}, as ${node.listen_address} sees them`, [
    { name: "node", of: (row) => `${row.address}${row.isSelf ? " (this one)" : ""}`, short: true },
    { name: "state", of: (row) => row.condition, short: true },
    { name: "load", of: (row) => row.load_bytes, show: bytes, ...optional },
    { name: "owns", of: (row) => row.owns, show: percent, number: true, missing: "-" },
    { name: "tokens", of: (row) => row.token_count, show: count, number: true },
    { name: "records behind", of: (row) => row.lag_records, show: count, ...optional },
    { name: "tablets not ready", of: (row) => row.tablets_behind, show: count, ...optional },
    { name: "silent, of the limit", of: (row) => (row.is_up ? row.silence : null), show: percent, number: true, missing: "-" },
    { name: "data center, rack", of: (row) => `${row.data_center}, ${row.rack}` },
    { name: "release", of: (row) => row.release_version, missing: "?" },
    { name: "host id", of: (row) => row.host_id, short: true },
  ], members(node, keyspace)));
}

function ofTablets(found) {
  const one = (name) => count(metrics.sum(found, `ilion_cluster_tablets_${name}`));
  refresh(at("cluster-tablets-facts"), ...facts([["followed", one("followed")], ["ready for reads", one("ready")],
    ["copied from other nodes", one("lacking")], ["halted", one("halted")]]));
  const all = tablets(found);
  const most = Math.max(1, ...all.map((row) => row.lag));
  const shown = all.slice(0, TABLETS_SHOWN);
  refresh(at("cluster-tablets"), table("cluster-tablets", `Records that this node has not applied, by tablet: ${shown.length} of ${all.length}`, [
    { name: "tablet", of: (row) => row.tablet, number: true },
    { name: "records behind", of: (row) => row.lag, show: count, number: true },
    { name: "compared", of: (row) => row.lag, draw: (row) => (row.lag ? bar(0, row.lag / most) : "") },
  ], shown));
}

function brokers(found, settings) {
  const log = logOf(settings.settings.find(([name]) => name === "log")?.[1]);
  refresh(at("cluster-brokers-facts"), ...facts([["brokers that the node was told of", log.brokers.join(", ") || "-"], ["name of the topics", log.topics || "-"]]));
  refresh(at("cluster-brokers"), table("cluster-brokers", "This node and the brokers, since the start of this node", [
    { name: "what", of: (row) => row.what },
    { name: "number", of: (row) => row.good, show: count, number: true },
    { name: "failed", of: (row) => row.failed, show: count, number: true, missing: "-" },
  ], exchanges(found)));
}

// Connections to other nodes; a role may lack the permission to see them.
async function others() {
  const read = (name, columns) => ask.rows(`SELECT address, port, ${columns} FROM system_views.${name}`);
  let rows;
  try {
    const [out, back] = await Promise.all([
      read("internode_outbound", "active_connections, sent_count, sent_bytes, error_count, expired_count, overload_count"),
      read("internode_inbound", "received_count, received_bytes, error_count"),
    ]);
    rows = out.map((row) => ({ ...row, inbound: back.find((one) => one.address === row.address && one.port === row.port) ?? {} }));
  } catch (error) {
    refresh(at("cluster-others"), element("p", { class: "alert" }, error.message));
    return;
  }
  const number = (name, of, show = count) => ({ name, of: (row) => Number(of(row) ?? 0), show, number: true });
  refresh(at("cluster-others"), table("cluster-others", "Requests between this node and the others, since the start of this node", [
    { name: "node", of: (row) => row.address.replaceAll("'", ""), short: true },
    number("connections", (row) => row.active_connections),
    number("asked", (row) => row.sent_count), number("bytes", (row) => row.sent_bytes, bytes),
    number("without an answer", (row) => row.error_count), number("too late", (row) => row.expired_count), number("held back", (row) => row.overload_count),
    number("answered", (row) => row.inbound.received_count), number("bytes received", (row) => row.inbound.received_bytes, bytes),
    number("failed", (row) => row.inbound.error_count),
  ], rows));
}
