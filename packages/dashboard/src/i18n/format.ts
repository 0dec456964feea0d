import { language, messages } from './index.ts'

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const

const locale = () => (language.value === 'zh' ? 'zh-CN' : 'en')

export function formatNumber(value: number): string {
  return new Intl.NumberFormat(locale(), { maximumFractionDigits: 0 }).format(value)
}

/** Writes large numbers in few characters: 12.4k. */
export function formatShort(value: number): string {
  if (Math.abs(value) < 10_000) return formatNumber(value)
  return new Intl.NumberFormat(locale(), { notation: 'compact', maximumFractionDigits: 1 }).format(value)
}

/** Writes a ratio that may be far below 1: 0.024. */
export function formatRatio(value: number): string {
  return new Intl.NumberFormat(locale(), { maximumSignificantDigits: 2 }).format(value)
}

export function formatShare(share: number): string {
  return new Intl.NumberFormat(locale(), { style: 'percent', maximumFractionDigits: 0 }).format(share)
}

/** Writes a difference as a share: +12 %, −3 %. */
export function formatChange(share: number): string {
  const style = { style: 'percent', maximumFractionDigits: 0, signDisplay: 'exceptZero' } as const
  return new Intl.NumberFormat(locale(), style).format(share)
}

/** Writes a share whose tenths of a percent matter: 0.3 %. */
export function formatPercent(share: number): string {
  return new Intl.NumberFormat(locale(), { style: 'percent', maximumFractionDigits: share < 0.1 ? 1 : 0 }).format(share)
}

/** Writes a rate that may be below 1: 0.4, 12, 1.2k. */
export function formatRate(value: number): string {
  return value < 10 ? new Intl.NumberFormat(locale(), { maximumFractionDigits: 1 }).format(value) : formatShort(value)
}

/** Writes a latency in few characters: 7 ms, 1.5 s. */
export function formatLatency(ms: number): string {
  const { units } = messages.value
  // a number stays in one line with its unit
  return ms < 1000 ? `${formatRate(ms)}\u00a0${units.ms}` : `${formatRate(ms / 1000)}\u00a0${units.s}`
}

/** Writes a size of memory: 84 MiB, 1.9 GiB. */
export function formatBytes(bytes: number): string {
  const [size, unit] = bytes < 2 ** 30 ? [bytes / 2 ** 20, 'MiB'] : [bytes / 2 ** 30, 'GiB']
  return `${formatRate(size)} ${unit}`
}

/** Writes a period as limits do: s, 10 s, min. */
export function formatPeriod(ms: number): string {
  const [unit, length] = UNITS.find(([, length]) => ms >= length && ms % length === 0) ?? UNITS[4]
  const name = messages.value.units[unit]
  return ms === length ? name : `${ms / length} ${name}`
}

/** Writes a duration by its largest unit and the next one below. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ${messages.value.units.ms}`
  const whole = Math.floor(ms / 1000) * 1000
  const first = UNITS.findIndex(([, length]) => whole >= length)
  const parts = UNITS.slice(first, Math.min(first + 2, 4)).map(([unit, length], index) => {
    const above = UNITS[first + index - 1]
    const count = Math.floor((index === 0 || above === undefined ? whole : whole % above[1]) / length)
    return count === 0 ? '' : `${count} ${messages.value.units[unit]}`
  })
  return parts.filter(part => part !== '').join(' ')
}

/** Returns the time zone of all moments on the page: UTC+01:00 (Europe/Berlin). */
export function zoneText(): string {
  const minutes = -new Date().getTimezoneOffset()
  const digits = (count: number) => String(count).padStart(2, '0')
  const offset = `UTC${minutes < 0 ? '−' : '+'}${digits(Math.floor(Math.abs(minutes) / 60))}:${digits(Math.abs(minutes) % 60)}`
  return messages.value.zone(offset, Intl.DateTimeFormat().resolvedOptions().timeZone)
}

export function formatMoment(at: number): string {
  const [then, now] = [new Date(at), new Date()]
  const isToday = then.toDateString() === now.toDateString()
  const day = {
    month: 'short',
    day: 'numeric',
    ...(then.getFullYear() !== now.getFullYear() && { year: 'numeric' }),
  } as const
  const time = { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false } as const
  return new Intl.DateTimeFormat(locale(), isToday ? time : { ...day, ...time }).format(at)
}
