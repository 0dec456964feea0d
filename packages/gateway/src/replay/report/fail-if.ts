import type { Report } from './report.ts'

/** A condition under which a replay fails: `refused > 0.1%`, `per-ip.refused > 100`, `callers > 3`. */
export interface Condition {
  readonly text: string
  readonly rule: string | undefined
  readonly figure: 'refused' | 'callers'
  readonly isAbove: boolean
  readonly value: number
  readonly isShare: boolean
}

/** A condition that cannot be read. */
export class ConditionError extends Error {}

export function parseCondition(text: string): Condition {
  const found = /^\s*(?:([\w.-]+)[.:])?(refused|callers)\s*(>|>=)\s*(\d+(?:\.\d+)?)\s*(%)?\s*$/.exec(text)
  if (found === null) {
    throw new ConditionError(
      `--fail-if "${text}" is not a condition; write 'refused > 0.1%', 'RULE.refused > 100' or 'RULE.callers > 3'`,
    )
  }
  const [, rule, figure, sign, value, percent] = found
  return {
    text: text.trim(),
    rule,
    figure: figure as Condition['figure'],
    isAbove: sign === '>',
    value: Number(value),
    isShare: percent !== undefined,
  }
}

/**
 * Says why a report fails a condition, in one line; undefined if it passes. The most that can have been refused counts, and a
 * condition on rules that could not be judged fails.
 */
export function failureOf(condition: Condition, report: Report): string | undefined {
  const { rule: id, figure } = condition
  const rule = id === undefined ? undefined : report.rules.find(one => one.id === id)
  if (id !== undefined && rule === undefined) {
    const unjudged = report.unjudged.find(one => one.id === id)
    if (unjudged) return unjudgedFailure(condition, [unjudged])
    throw new ConditionError(`--fail-if "${condition.text}": there is no rule ${id}`)
  }
  // the refusals of a rule that could not be judged are unknown: they may be more than the condition allows
  if (id === undefined && report.unjudged.length > 0) return unjudgedFailure(condition, report.unjudged)
  const [most, all] = figureOf(figure, rule, report)
  const value = condition.isShare ? (all === 0 ? 0 : (100 * most) / all) : most
  const fails = condition.isAbove ? value > condition.value : value >= condition.value
  if (!fails) return undefined
  const share = condition.isShare ? `${value.toFixed(3)} % (${most} of ${all})` : String(most)
  return `${condition.text}: up to ${share}${id === undefined ? '' : ` by rule ${id}`}`
}

function unjudgedFailure({ text }: Condition, unjudged: Report['unjudged']): string {
  const rules = unjudged.map(({ id, missing }) => `${id} (the log has no ${missing.join(', ')})`)
  const [first] = unjudged
  return `${text}: could not judge ${rules.length === 1 ? 'rule' : 'the rules'} ${rules.join(', ')}; ${first!.remedy}`
}

function figureOf(
  figure: Condition['figure'],
  rule: Report['rules'][number] | undefined,
  report: Report,
): [number, number] {
  if (figure === 'refused') return rule ? [rule.refused.most, rule.calls] : [report.refused.most, report.calls]
  if (rule) return [rule.callers.hit.most, rule.callers.count]
  const hit = Math.max(0, ...report.rules.map(one => one.callers.hit.most))
  return [hit, Math.max(0, ...report.rules.map(one => one.callers.count))]
}
