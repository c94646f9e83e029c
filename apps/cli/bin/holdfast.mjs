#!/usr/bin/env node
// Needs Node 24, which the npm package `node` puts first on PATH of npm scripts and npx.
const major = Number(process.versions.node.split(".")[0]);
if (major < 24) {
  process.stderr.write(
    `holdfast needs Node 24; this is ${process.versions.node}. Run it as "npx holdfast" or "npm start" inside the project.\n`,
  );
  process.exit(1);
}
await import("../src/main.ts");
