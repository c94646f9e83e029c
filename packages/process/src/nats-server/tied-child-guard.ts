// Guard of a tied child: a process of its own that starts the program given on its command line, tells its pid to the parent, and kills it when
// the channel from the parent closes, as it does in every kind of death of the parent. It ends the way the program ended.
import { spawn } from "node:child_process";

const [file = "", ...args] = process.argv.slice(2);
const child = spawn(file, args, { stdio: ["ignore", "inherit", "inherit"] });

process.on("disconnect", () => void child.kill("SIGKILL"));
child.once("spawn", () => process.send?.(child.pid));
child.once("error", () => process.exit(127));
child.once("exit", (code, signal) => {
  const finish = (): void => {
    if (signal !== null) process.kill(process.pid, signal);
    else process.exit(code ?? 1);
  };
  if (process.connected) process.send?.("exited", finish);
  else finish();
});
