import { z } from "zod";
import { RuntimeFault } from "./errors.ts";

/** Who caused something: a person, a service, or an agent. */
export const Principal = z.object({
  kind: z.enum(["person", "service", "agent"]),
  id: z.string().regex(/^[A-Za-z0-9_]{1,48}$/, "1 to 48 characters of A-Z, a-z, 0-9 and _"),
  roles: z.array(z.string().regex(/^[a-z][a-z0-9-]{0,31}$/)).max(16),
});
export type Principal = z.infer<typeof Principal>;

/** `<kind>-<id>`: the token of a principal inside a subject. Roles never travel in it. */
export const principalToken = (principal: Pick<Principal, "kind" | "id">): string =>
  `${principal.kind}-${principal.id}`;

/** @throws RuntimeFault HF-1002 when the token is not `<kind>-<id>` */
export function parsePrincipalToken(token: string): Principal {
  const dash = token.indexOf("-");
  const parsed = Principal.safeParse({
    kind: token.slice(0, dash),
    id: token.slice(dash + 1),
    roles: [],
  });
  if (!parsed.success) {
    throw new RuntimeFault(
      "HF-1002",
      `Principal "${token}": expected person-<id>, service-<id> or agent-<id>. Set HOLDFAST_PRINCIPAL to such a value.`,
    );
  }
  return parsed.data;
}
