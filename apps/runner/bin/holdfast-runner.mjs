#!/usr/bin/env node
const major = Number(process.versions.node.split(".")[0]);
if (major < 24) {
  process.stderr.write(
    `holdfast-runner needs Node 24; this is ${process.versions.node}. Run it as "npx holdfast-runner" inside the project.\n`,
  );
  process.exit(1);
}
await import("../src/main.ts");
