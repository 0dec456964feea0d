import type { Rule } from '../api/generated.ts'
import { formatNumber, formatPeriod } from '../i18n/format.ts'
import { viewMessages } from '../i18n/views/index.ts'

/** Writes a rule's limits for readers: 20 / min, 5 / s. */
export function limitText({ limits }: Pick<Rule, 'limits'>): string {
  const { limit, atOnce } = viewMessages.value.rules
  const { units } = viewMessages.value
  return limits
    .map(({ count, periodMs, unit }) =>
      periodMs > 0
        ? limit(formatNumber(count), unit ? units[unit] : formatPeriod(periodMs))
        : atOnce(formatNumber(count)),
    )
    .join(', ')
}

/** Names the dimensions that distinguish the callers of a rule. */
export function byText({ by }: Pick<Rule, 'by'>): string {
  const { perWhom, together } = viewMessages.value.rules
  return by.length === 0 ? together : perWhom(by.join(' + '))
}
