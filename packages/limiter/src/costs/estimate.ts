import type { BodyField, Call, CallBody } from '../call.ts'
import type { ReserveInput, ReserveSource } from './cost-input.ts'

type BodySource = Extract<ReserveSource, { readonly path: readonly string[] }>

/** The readings of a request: its fields by the sources that read them. */
interface Reading {
  readonly call: Call
  readonly fields: ReadonlyMap<ReserveSource, BodyField>
}

/**
 * Computes what a call is charged before its cost is known: the largest of `from` that the request has, times `times`, and `plus`,
 * within bounds. What cannot be read counts as `max`, and what can be read in two ways as the larger, so that no call gets cheaper
 * by being hard to read.
 */
export function estimateOf(input: ReserveInput): (call: Call) => number {
  const { from, plus, times, min, max, typical = max } = input
  const inBody = [...from, ...plus, ...times.flat()].filter(isInBody)
  const paths = inBody.map(({ path }) => path)
  return call => {
    const fields = fieldsOf(call.body, paths)
    const reading = { call, fields: new Map(inBody.map((source, index) => [source, fields[index]!])) }
    const found = from.map(source => weightedAmount(source, reading)).filter(amount => amount !== undefined)
    if (from.every(source => mayLack(source, reading))) found.push(typical)
    const factor = times.reduce((product, group) => product * mostOf(group, reading), 1)
    const more = plus.map(source => weightedAmount(source, reading) ?? 0)
    const sum = more.reduce((one, other) => one + other, Math.max(...found) * factor)
    // NaN: something could not be read
    return sum < max ? Math.max(min, Math.ceil(sum)) : max
  }
}

/** True if an estimate needs more of a request than its headers. */
export function readsBody({ from, plus, times }: ReserveInput): boolean {
  return [...from, ...plus, ...times.flat()].some(source => isInBody(source) || source.kind === 'bytes')
}

function isInBody(source: ReserveSource): source is BodySource {
  return source.kind === 'json' || source.kind === 'items'
}

function fieldsOf(body: CallBody | undefined, paths: readonly BodySource['path'][]): readonly BodyField[] {
  if (body?.fields !== undefined) return body.fields(paths)
  return paths.map(path => {
    const number = body?.number(path)
    return { number, mayLack: number === undefined, items: 0 }
  })
}

/** Returns the largest of these that the request has; 1 if it has none. */
function mostOf(group: readonly ReserveSource[], reading: Reading): number {
  return Math.max(1, ...group.map(source => amountOf(source, reading) ?? 1))
}

/** True if the service may find nothing there. */
function mayLack(source: ReserveSource, reading: Reading): boolean {
  return reading.fields.get(source)?.mayLack ?? amountOf(source, reading) === undefined
}

function weightedAmount(source: ReserveSource, reading: Reading): number | undefined {
  const amount = amountOf(source, reading)
  return amount === undefined ? undefined : amount * source.weight
}

/** Returns the amount of a source; undefined if the request does not have it, NaN if it has something that is not a number of 0 or more. */
function amountOf(source: ReserveSource, { call, fields }: Reading): number | undefined {
  switch (source.kind) {
    case 'number':
      return source.amount
    case 'header':
      return inHeader(call.headers?.[source.name])
    case 'bytes':
      return call.body === undefined ? undefined : (call.body.bytes ?? Number.NaN) / source.per
    case 'items':
      return fields.get(source)!.items
    case 'json': {
      const { number } = fields.get(source)!
      return number === undefined || number >= 0 ? number : Number.NaN
    }
  }
}

function inHeader(value: string | readonly string[] | undefined): number | undefined {
  if (value === undefined) return undefined
  return typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
}
