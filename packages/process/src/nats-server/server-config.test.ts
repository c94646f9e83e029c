import { describe, expect, test } from "vitest";
import { z } from "zod";
import { FLEET_ACCOUNT } from "./permissions.ts";
import { DEFAULT_SERVER_LIMITS, serverConfigText, type ServerConfigOptions } from "./server-config.ts";
import { parseGreeting } from "./server-greeting.ts";

const options: ServerConfigOptions = {
  serverName: "holdfast-1",
  port: -1,
  portsDir: "/c/ports",
  storeDir: '/s/with "quotes"',
  logFile: "/c/log",
  durabilityClass: "F",
  limits: DEFAULT_SERVER_LIMITS,
  ns: "main",
  shards: 2,
  principals: ["person-local"],
  passwords: { node: "n", client: "c", operator: "o", subscriber: "s" },
};
const Config = z.looseObject({ accounts: z.record(z.string(), z.unknown()) });
const parse = (more: Partial<ServerConfigOptions>): z.infer<typeof Config> =>
  Config.parse(JSON.parse(serverConfigText({ ...options, ...more })));

describe("the configuration of a managed server", () => {
  test("is class F, on loopback, with limits, a write deadline and short pings", () => {
    const { accounts, ...rest } = parse({});
    expect(Object.keys(accounts)).toEqual([
      FLEET_ACCOUNT,
      "HOLDFAST_CLIENT",
      "HOLDFAST_OPERATOR",
      "HOLDFAST_SUBSCRIBER",
    ]);
    expect(rest).toEqual({
      server_name: "holdfast-1",
      host: "127.0.0.1",
      port: -1,
      ports_file_dir: "/c/ports",
      log_file: "/c/log",
      logfile_size_limit: 10_485_760,
      logfile_max_num: 3,
      max_payload: 1_048_576,
      write_deadline: "5s",
      ping_interval: "5s",
      ping_max: 2,
      jetstream: {
        store_dir: '/s/with "quotes"',
        max_memory_store: 268_435_456,
        max_file_store: 68_719_476_736,
        sync_interval: "always",
      },
      authorization: { timeout: 5 },
    });
  });

  test("of class P leaves syncing to the server, and a given port needs no ports file", () => {
    const config = parse({ durabilityClass: "P", port: 4222 });
    expect(config["jetstream"]).not.toHaveProperty("sync_interval");
    expect(config).toMatchObject({ port: 4222 });
    expect(config).not.toHaveProperty("ports_file_dir");
  });
});

describe("the greeting of a server", () => {
  test("is read from the first line", () => {
    const text = 'INFO {"server_name":"s","version":"2.12.0","jetstream":true,"max_payload":1} \r\nPING\r\n';
    expect(parseGreeting(text)).toEqual({ server_name: "s", version: "2.12.0", jetstream: true });
  });

  test.each(["HTTP/1.1 400 Bad Request\r\n", "INFO {broken}\r\n", "INFO {}\r\n", "\r\n"])("is not %j", (text) => {
    expect(parseGreeting(text)).toBeUndefined();
  });
});
