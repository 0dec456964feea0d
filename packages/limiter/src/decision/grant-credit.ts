import type { Call } from '../call.ts'
import { DianaError } from '../errors.ts'
import { type CreditStore, MOST_CREDIT } from '../stores/credits.ts'
import type { RuleState } from './rule-state.ts'

/** Gives a caller permits beside the limit; returns how many they have then, and throws if the rule or the number does not allow it. */
export async function grantCredit(
  { rule }: RuleState,
  key: string,
  permits: number,
  credits: CreditStore,
): Promise<number> {
  const fault = (message: string): DianaError => new DianaError('BAD_CALL', `rule "${rule.id}" ${message}`)
  if (!rule.credit) throw fault('has no credit: add credit: true to it')
  if (!Number.isSafeInteger(permits) || permits < 1) {
    throw fault(`takes a whole number of permits, 1 or more, not ${String(permits)}`)
  }
  const left = await credits.add(rule.id, key, permits)
  if (left === undefined) throw fault(`has no room for more credit: a caller may have ${MOST_CREDIT}`)
  return left
}

/** The credit of a call's caller, by rule; without the rules that have none, or whose store does not answer. */
export async function creditsOf(
  call: Call,
  met: readonly RuleState[],
  credits: CreditStore,
): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>()
  for (const { rule } of met) {
    if (!rule.credit) continue
    const left = await Promise.resolve(credits.left(rule.id, rule.key(call))).catch(() => undefined)
    if (left !== undefined) found.set(rule.id, left)
  }
  return found
}
