import type { Script } from "../script.ts";
import { blocker } from "./blocker.ts";
import { delegateTwo } from "./delegate-two.ts";
import { echo } from "./echo.ts";
import { faultScripts } from "./fault-scripts.ts";
import { puppet } from "./puppet.ts";
import { stubborn } from "./stubborn.ts";
import { surveyParent } from "./survey-parent.ts";
import { surveyReader } from "./survey-reader.ts";

/**
 * The models every server knows, by name.
 *
 * @param options.thinkMs  milliseconds before the first token of `survey-reader`
 */
export function standardScripts(options: { readonly thinkMs: number }): Readonly<Record<string, Script>> {
  return {
    "survey-parent": surveyParent,
    "survey-reader": surveyReader(options),
    "delegate-two": delegateTwo,
    puppet,
    stubborn,
    echo,
    blocker,
    ...faultScripts,
  };
}
