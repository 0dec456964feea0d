import type { Rule, StoreStatus } from '../api/generated.ts'
import { rules } from '../figures/live.ts'
import { formatMoment, formatNumber } from '../i18n/format.ts'
import { causes, messages } from '../i18n/index.ts'

const MOST_NAMES = 5

interface Cause {
  readonly code?: string | undefined
  readonly what?: string | undefined
  readonly remedy?: string | undefined
}

/** Returns what happened to a store, as a clause in the language of the page; codes that the page does not know keep their English words. */
export function causeText({ code = '', what = '' }: Cause): string {
  return upperFirst(causes.value[code]?.what ?? what)
}

/** Returns what to do about an outage. */
export function remedyText({ code = '', remedy = '' }: Cause): string {
  return upperFirst(causes.value[code]?.remedy ?? remedy)
}

/** Returns what happened and since when, and what it means for calls. */
export function outageText(store: StoreStatus): string {
  const { outage } = messages.value
  return `${outage.since(causeText(store), formatMoment(store.since))} ${meaningText(store)}`
}

function meaningText({ fleet, rules: affected }: StoreStatus): string {
  const { outage } = messages.value
  const known = (rules.value ?? []).filter(({ id }) => affected.includes(id))
  const count = (behavior: Rule['whenStoreDown']) => known.filter(rule => rule.whenStoreDown === behavior).length
  const size = fleet.size
  const counted = size > 1 ? outage.share(formatNumber(size)) : outage.alone
  const parts = known.length > 0 && count('share') === 0 ? [] : [counted]
  for (const behavior of ['local', 'allow', 'refuse'] as const) {
    const many = count(behavior)
    if (many > 0) parts.push(outage[behavior](outage.rules(many)))
  }
  return outage.means(parts.join(outage.separator))
}

/** Names the affected rules by what is shortest: those affected, or those of all rules that are not. */
export function affectedText(affected: readonly string[], all: readonly string[]): string {
  const { outage } = messages.value
  const spared = all.filter(id => !affected.includes(id))
  if (affected.length === 0) return ''
  if (spared.length === 0) return affected.length === 1 ? affected[0]! : outage.all(formatNumber(affected.length))
  if (affected.length <= spared.length || all.length === 0) {
    return affected.length <= MOST_NAMES
      ? affected.join(', ')
      : outage.some(formatNumber(affected.length), formatNumber(all.length), namesText(affected))
  }
  return outage.allExcept(formatNumber(all.length), namesText(spared))
}

function namesText(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).join(', ')
  const more = names.length - MOST_NAMES
  return more > 0 ? messages.value.outage.more(shown, formatNumber(more)) : shown
}

function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
