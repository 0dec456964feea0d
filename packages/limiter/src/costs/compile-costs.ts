import type { Call } from '../call.ts'
import type { ReserveSource, SettleInput, SettleSource } from './cost-input.ts'
import type { MeasuredCost, ReserveSettings, SettleSettings } from './cost-options.ts'
import { estimateOf, readsBody } from './estimate.ts'
import { type AnswerHeaders, AnswerReader } from './read-answer.ts'
import { usageFormats } from './usage/index.ts'

/** A rule's cost, ready to be read from requests and answers. */
export interface CompiledCost {
  /** Returns what a call is charged before its cost is known; undefined if the rule does not say. */
  readonly estimate: ((call: Call) => number) | undefined
  /** True if that needs the request's body. */
  readonly readsBody: boolean
  /** The way in which answers are read; undefined if they are not. */
  readonly settle: SettleInput | undefined
  /** The counted unit, as headers name it: `tokens`. */
  readonly unit: string | undefined
  /** Reads answers for several such inputs; filters get it from here, so that they load nothing that most rules do not need. */
  readonly readAnswer: ReadAnswer
}

export type ReadAnswer = (inputs: readonly (SettleInput | undefined)[], headers: AnswerHeaders) => AnswerReader

const evenly = { input: 1, cached: 1, output: 1 }
/** The number of bytes of a token, about. */
export const BYTES_PER_TOKEN = 4

export function compileCosts({ reserve, settle, weights = evenly, unit }: MeasuredCost): CompiledCost {
  const input = reserve && {
    from: weighted(reserve.from.flatMap(reserveSources), weights.output),
    plus: weighted([...reserve.plus.flatMap(reserveSources), ...ownPlus(reserve)], weights.input),
    times: [...(reserve.times?.length ? [reserve.times.flatMap(reserveSources)] : []), ...knownTimes(reserve)],
    ...(reserve.typical !== undefined && { typical: reserve.typical * weights.output }),
    min: reserve.min,
    max: reserve.max,
  }
  const named = [...(reserve?.from ?? []), ...(settle?.from ?? [])].some(isFormat)
  return {
    estimate: input && estimateOf(input),
    readsBody: input !== undefined && readsBody(input),
    settle: settle && { from: settle.from.map(settleSource), weights, max: settle.max },
    unit: unit ?? (named ? 'tokens' : undefined),
    readAnswer: (inputs, headers) => new AnswerReader(inputs, headers),
  }
}

/** Returns the part of an estimate for the request itself, if a usage format is named and the settings do not give that part. */
function ownPlus({ from, plus }: ReserveSettings): ReserveSource[] {
  return plus.length === 0 && from.some(isFormat) ? [{ kind: 'bytes', per: BYTES_PER_TOKEN, weight: 1 }] : []
}

/** Returns what multiplies the fields of `from` in the formats that have them. */
function knownTimes({ from }: ReserveSettings): ReserveSource[][] {
  const fields = from.flatMap(text => (text.startsWith('json:') ? [text.slice('json:'.length)] : []))
  const formats = usageFormats.filter(
    ({ name, limits }) => from.includes(name) || limits.some(limit => fields.includes(limit)),
  )
  const sources = (kind: 'json' | 'items', names: readonly string[]): ReserveSource[] =>
    names.map(name => ({ kind, path: name.split('.'), weight: 1 }))
  return formats
    .flatMap(({ choices, lists }) => [sources('json', choices), sources('items', lists)])
    .filter(group => group.length > 0)
}

function weighted(sources: readonly ReserveSource[], weight: number): ReserveSource[] {
  return sources.map(source => ({ ...source, weight }))
}

function isFormat(text: string): boolean {
  return usageFormats.some(({ name }) => name === text)
}

function reserveSources(text: string): ReserveSource[] {
  const format = usageFormats.find(({ name }) => name === text)
  if (format) return format.limits.map(field => ({ kind: 'json', path: field.split('.'), weight: 1 }))
  const [kind, argument] = parts(text)
  if (kind === 'json') return [{ kind, path: argument.split('.'), weight: 1 }]
  if (kind === 'header') return [{ kind, name: argument.toLowerCase(), weight: 1 }]
  if (kind === 'bytes') return [{ kind, per: 1, weight: 1 }]
  const per = /^bytes\/(\d+)$/.exec(text)?.[1]
  return per === undefined
    ? [{ kind: 'number', amount: Number(text), weight: 1 }]
    : [{ kind: 'bytes', per: Number(per), weight: 1 }]
}

function settleSource(text: SettleSettings['from'][number]): SettleSource {
  const format = usageFormats.find(({ name }) => name === text)
  if (format) return { kind: 'usage', format }
  const [kind, argument] = parts(text)
  return kind === 'json' ? { kind, path: argument.split('.') } : { kind: 'header', name: argument.toLowerCase() }
}

function parts(text: string): [kind: string, argument: string] {
  const colon = text.indexOf(':')
  return colon < 0 ? [text, ''] : [text.slice(0, colon), text.slice(colon + 1)]
}
