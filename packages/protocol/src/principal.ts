import { z } from "zod";
import { RuntimeFault } from "./errors.ts";
import { ExternalId } from "./ids.ts";

/** For whom something is done, as its sender says: the subject proves the sender, not this. */
export const OnBehalf = z.object({ user: ExternalId.optional(), tenant: ExternalId.optional() });
export type OnBehalf = z.infer<typeof OnBehalf>;

/** Who caused something: a person, a service, or an agent; and for whom. */
export const Principal = z.object({
  kind: z.enum(["person", "service", "agent"]),
  id: z.string().regex(/^[A-Za-z0-9_]{1,48}$/, "1 to 48 characters of A-Z, a-z, 0-9 and _"),
  roles: z.array(z.string().regex(/^[a-z][a-z0-9-]{0,31}$/)).max(16),
  ...OnBehalf.shape,
});
export type Principal = z.infer<typeof Principal>;

/**
 * The sender with those it acts for. A person acts for nobody else: only services and agents may name another user.
 */
export function actingFor(sender: Principal, { user, tenant }: OnBehalf = {}): Principal {
  const forOther = sender.kind === "person" || user === undefined ? {} : { user };
  return { ...sender, ...forOther, ...(tenant !== undefined && { tenant }) };
}

/** User and tenant of whatever a principal caused: a person itself, or whom a service named, or else the service. */
export function ownerOf(principal: Principal): { readonly user: string; readonly tenant?: string } {
  const { kind, id, tenant } = principal;
  const user = principal.user ?? (kind === "person" ? id : principalToken(principal));
  return { user, ...(tenant !== undefined && { tenant }) };
}

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
