// Walks the pull flow with the official TypeScript client of MCP.
// usage: node walk.mjs <number of tools> <server> <args…>
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [expected, command, ...args] = process.argv.slice(2);
const client = new Client({ name: "walk", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));

let calls = 0;
async function call(name, input = {}) {
  const result = await client.callTool({ name, arguments: input });
  calls++;
  if (result.isError) throw new Error(`${name}: ${result.content[0].text}`);
  return result.structuredContent;
}
function check(ok, what) {
  if (!ok) throw new Error(what);
}

const { tools } = await client.listTools();
check(tools.length === Number(expected), `${tools.length} tools`);
await call("coordination.capabilities");
const project = await call("projects.create", { name: "P" });
const project_id = project.id;
for (const name of ["projects.list", "assistant.proposals.list"]) await call(name);
for (const name of ["roots.list", "context_sources.list", "skills.list", "roles.list", "work_items.list", "assignments.list", "assignments.next",
  "memory_entries.list", "memory_candidates.list", "projects.activity", "projects.health", "projects.operations_brief", "projects.setup_readiness"]) {
  await call(name, { project_id });
}
const role = await call("roles.create", { project_id, name: "R" });
const work = await call("work_items.create", { project_id, title: "W" });
const work_item_id = work.id;
for (const name of ["artifacts.list", "evidence.list", "reviews.list", "handoffs.list"]) await call(name, { project_id, work_item_id });
await call("assignments.create", { project_id, work_item_id, role_id: role.id });
const next = await call("assignments.next", { project_id, agent_kind: "codex", skill_ids: [] });
check(next.items.length === 1, "nothing is offered");
const on = { project_id, assignment_id: next.items[0].id };
const claimed = await call("assignments.claim", { ...on, claimed_by: "walk" });
const held = { ...on, claim_id: claimed.claim.id };
await call("assignments.renew_claim", held);
await call("assignments.context", on);
const packet = await call("assignments.launch_packet", on);
check(packet.kind === "assignment_launch_packet", "no packet");
await call("assignments.update_status", { ...held, status: "running", execution_ref: { kind: "task_run", run_id: "r" } });
await call("evidence.record", { project_id, work_item_id, assignment_id: on.assignment_id, title: "Log", locator: "file:///log" });
const ended = await call("assignments.complete", held);
check(ended.status === "completed", ended.status);
const again = await client.callTool({ name: "assignments.complete", arguments: held });
check(again.isError && again.structuredContent.error.code === "conflict", "a second end was accepted");
const ready = await call("work_items.closeout_readiness", { project_id, work_item_id });
check(ready.ready, "not ready");
const { resources } = await client.listResources();
const { resourceTemplates } = await client.listResourceTemplates();
check(resourceTemplates.length === 6, "templates");
for (const r of resources) await client.readResource({ uri: r.uri });
await client.close();
console.log(`ok ${calls} calls ${resources.length} resources`);
