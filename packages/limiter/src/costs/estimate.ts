import type { Call } from '../call.ts'
import type { ReserveInput, ReserveSource } from './cost-input.ts'

/**
 * What a call is charged before its cost is known: the largest of `from` that the request has, and `plus`, within bounds. What
 * cannot be read counts as `max`, so that no call gets cheaper by being hard to read.
 */
export function estimateOf(input: ReserveInput): (call: Call) => number {
  const { from, plus, min, max, typical = max } = input
  return call => {
    const found = from.map(source => weightedAmount(source, call)).filter(amount => amount !== undefined)
    const more = plus.map(source => weightedAmount(source, call) ?? 0)
    const sum = more.reduce((one, other) => one + other, found.length === 0 ? typical : Math.max(...found))
    // NaN: something could not be read
    return sum < max ? Math.max(min, Math.ceil(sum)) : max
  }
}

/** Whether an estimate needs more of a request than its headers. */
export function readsBody({ from, plus }: ReserveInput): boolean {
  return [...from, ...plus].some(({ kind }) => kind === 'json' || kind === 'bytes')
}

function weightedAmount(source: ReserveSource, call: Call): number | undefined {
  const amount = amountOf(source, call)
  return amount === undefined ? undefined : amount * source.weight
}

/** Undefined if the request does not have it; NaN if it has something that is not a number of 0 or more. */
function amountOf(source: ReserveSource, call: Call): number | undefined {
  switch (source.kind) {
    case 'number':
      return source.amount
    case 'header':
      return inHeader(call.headers?.[source.name])
    case 'bytes':
      return call.body === undefined ? undefined : (call.body.bytes ?? Number.NaN) / source.per
    case 'json': {
      const number = call.body?.number(source.path)
      return number === undefined || number >= 0 ? number : Number.NaN
    }
  }
}

function inHeader(value: string | readonly string[] | undefined): number | undefined {
  if (value === undefined) return undefined
  return typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
}
