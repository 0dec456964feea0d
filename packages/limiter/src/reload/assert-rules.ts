import type { Algorithm } from '../algorithms/algorithm.ts'
import type { Dimension } from '../dimensions/dimension.ts'
import { compileDocument } from '../rules/compile.ts'
import type { RuleDocument } from '../rules/rule.ts'

/** Throws what a limiter throws at its start for a document that was read well but cannot be used, such as a short JWT key. */
export function assertRules(
  document: RuleDocument,
  { algorithms, dimensions }: { readonly algorithms: readonly Algorithm[]; readonly dimensions: readonly Dimension[] },
): void {
  compileDocument(document, algorithms, dimensions, Date.now)
}
