import type { Algorithm } from '../algorithms/algorithm.ts'
import { formatDuration } from '../common/duration.ts'
import type { Dimension } from '../dimensions/dimension.ts'
import { type CompiledRule, compileDocument } from '../rules/compile.ts'
import { formatLimit } from '../rules/limit-text.ts'
import type { RuleDocument } from '../rules/rule.ts'

/**
 * Throws what a limiter throws at its start for a document that was read well but cannot be used, such as a short JWT key.
 * Returns warnings of rules that probably do not mean what they say.
 */
export function assertRules(
  document: RuleDocument,
  { algorithms, dimensions }: { readonly algorithms: readonly Algorithm[]; readonly dimensions: readonly Dimension[] },
): string[] {
  const { rules } = compileDocument(document, algorithms, dimensions, Date.now)
  return rules.flatMap(blockWarnings)
}

/** Warns of a block that ends before the limit admits the caller again, if it leaves the count as it is. */
function blockWarnings({ id, meters, limits, blockMs = 0, blockClears, blockGrowth }: CompiledRule): string[] {
  if (blockMs === 0 || blockClears) return []
  const nowUs = Date.now() * 1000
  const level = meters.findIndex(meter => {
    const state = new Float64Array(meter.slots)
    const most = meter.remaining(state, 0, nowUs)
    if (meter.held !== undefined || most < 1) return false
    meter.take(state, 0, nowUs, most, 0)
    return meter.delay(state, 0, nowUs, 1) > blockMs * 1000
  })
  if (level < 0) return []
  const block = formatDuration(blockMs)
  const remedy = blockGrowth ? 'leave clear: false out' : `write block: { first: ${block}, factor: 1 }`
  return [
    `rule "${id}": a block of ${block} can end before limit ${formatLimit(limits[level]!)} admits the caller again; if callers shall pass when it ends, ${remedy}`,
  ]
}
