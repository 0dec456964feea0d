import { promisify } from 'node:util'
import { nodeZlib } from '../common/node-modules.ts'
import type { SettleInput, SettleSource } from './cost-input.ts'
import { AnswerEnds, HEAD_BYTES, TAIL_BYTES } from './reading/answer-ends.ts'
import { type EventForm, eventNumbers } from './reading/event-numbers.ts'
import { jsonNumbersAtEnd, merged } from './reading/json-end.ts'
import { type JsonNumbers, type JsonPath, jsonNumbers, type PathTree, pathTree } from './reading/json-numbers.ts'
import type { FieldReader } from './usage/usage-format.ts'

/** The cost that an answer reports, and where. */
export interface ReportedCost {
  readonly amount: number
  readonly by: 'usage' | 'header'
  /** True if it reported more than the rule accepts. */
  readonly isBounded: boolean
}

type Inputs = readonly (SettleInput | undefined)[]

export type AnswerHeaders = (name: string) => string | undefined

/** No compressed answer of more than 64 KiB is read, nor one that becomes more than 1 MiB. */
const MOST_DECODED_BYTES = 1_048_576

const limits = { maxOutputLength: MOST_DECODED_BYTES }
const decoders: Readonly<Record<string, (bytes: Buffer) => Promise<Buffer>>> = {
  gzip: bytes => promisify<Buffer, object, Buffer>(nodeZlib().gunzip)(bytes, limits),
  'x-gzip': bytes => promisify<Buffer, object, Buffer>(nodeZlib().gunzip)(bytes, limits),
  deflate: bytes => promisify<Buffer, object, Buffer>(nodeZlib().inflate)(bytes, limits),
  br: bytes => promisify<Buffer, object, Buffer>(nodeZlib().brotliDecompress)(bytes, limits),
}

/** Keeps both ends of an answer on its way to the caller until its cost can be read. */
export class AnswerReader {
  readonly #inputs: readonly (SettleInput | undefined)[]
  readonly #ends: AnswerEnds | undefined
  readonly #headers: AnswerHeaders
  readonly #form: EventForm | undefined
  readonly #encoding: string

  constructor(inputs: Inputs, headers: AnswerHeaders) {
    this.#inputs = inputs
    this.#headers = headers
    this.#form = formOf(headers('content-type') ?? '')
    this.#encoding = (headers('content-encoding') ?? 'identity').trim().toLowerCase()
    const readsBody = inputs.some(input => input?.from.some(({ kind }) => kind !== 'header'))
    const isReadable = this.#encoding === 'identity' || Object.hasOwn(decoders, this.#encoding)
    if (readsBody && isReadable) this.#ends = new AnswerEnds()
  }

  add(chunk: Uint8Array): void {
    this.#ends?.add(chunk)
  }

  /** Returns what each input finds, undefined if nothing; a promise if the answer has to be decoded. */
  read(): readonly (ReportedCost | undefined)[] | Promise<readonly (ReportedCost | undefined)[]> {
    const ends = this.#ends
    if (ends === undefined || ends.bytes === 0) return this.#amounts(undefined)
    if (this.#encoding === 'identity') {
      const numbers = this.#numbersIn(ends)
      ends.release()
      return this.#amounts(numbers)
    }
    if (!ends.isWhole) return this.#amounts(undefined)
    return decoders[this.#encoding]!(ends.tail).then(
      bytes => this.#amounts(this.#numbersIn(partsOf(bytes))),
      () => this.#amounts(undefined),
    )
  }

  #amounts(numbers: JsonNumbers | undefined): (ReportedCost | undefined)[] {
    const { names } = planFor(this.#inputs)
    const read = (path: string): number | undefined => numbers?.numbers[names.get(path)!]
    return this.#inputs.map(input => input && this.#costBy(input, read))
  }

  #costBy(input: SettleInput, read: FieldReader): ReportedCost | undefined {
    for (const source of input.from) {
      let isUsable = true
      const amount = amountOf(source, input, this.#headers, path => {
        const number = read(path)
        // a field that is negative or no number makes all of the usage doubtful
        if (number !== undefined && !(number >= 0)) isUsable = false
        return number
      })
      if (amount === undefined || !isUsable) continue
      const isBounded = !(amount <= input.max)
      const by = source.kind === 'header' ? 'header' : 'usage'
      return { amount: isBounded ? input.max : Math.ceil(amount), by, isBounded }
    }
    return undefined
  }

  #numbersIn({ head, tail, isWhole }: Pick<AnswerEnds, 'head' | 'tail' | 'isWhole'>): JsonNumbers | undefined {
    const { paths, tree, hints } = planFor(this.#inputs)
    const form = this.#form
    if (form !== undefined) {
      const last = eventNumbers(tail, paths, { form, isFirst: isWhole, hints })
      if (isWhole || head === undefined) return last
      return merged(eventNumbers(head, paths, { form, isFirst: true, hints }), last)
    }
    if (isWhole) {
      const read = jsonNumbers(tail, tree)
      return read.end === 'invalid' ? undefined : read
    }
    return jsonNumbersAtEnd(tail, paths) ?? (head && jsonNumbers(head, tree))
  }
}

/** The fields that are searched for in an answer. */
interface Plan {
  readonly inputs: Inputs
  readonly paths: readonly JsonPath[]
  readonly tree: PathTree
  /** The index of each path. */
  readonly names: ReadonlyMap<string, number>
  readonly hints: readonly string[]
}

/** Most answers are read for the same rules as the one before. */
let lastPlan: Plan | undefined

function planFor(inputs: Inputs): Plan {
  const known = lastPlan
  if (known?.inputs.length === inputs.length && inputs.every((input, index) => input === known.inputs[index]))
    return known
  const sources = inputs.flatMap(input => input?.from ?? [])
  const paths = [...new Map(sources.flatMap(pathsOf).map(path => [path.join('.'), path])).values()]
  const names = new Map(paths.map((path, index) => [path.join('.'), index]))
  const hints = [...new Set(sources.flatMap(hintsOf))]
  lastPlan = { inputs, paths, tree: pathTree(paths), names, hints }
  return lastPlan
}

function amountOf(
  source: SettleSource,
  { weights }: SettleInput,
  headers: AnswerHeaders,
  read: FieldReader,
): number | undefined {
  switch (source.kind) {
    case 'json':
      return read(source.path.join('.'))
    case 'header':
      return numberIn(headers(source.name))
    case 'usage': {
      const tokens = source.format.tokens(read)
      if (tokens === undefined) return undefined
      // a sum such as 0.1 + 0.2 must not be rounded up to the next whole number
      const sum = tokens.input * weights.input + tokens.cached * weights.cached + tokens.output * weights.output
      return Number(sum.toPrecision(12))
    }
  }
}

function pathsOf(source: SettleSource): JsonPath[] {
  if (source.kind === 'json') return [source.path]
  return source.kind === 'usage' ? source.format.fields.map(field => field.split('.')) : []
}

function hintsOf(source: SettleSource): readonly string[] {
  if (source.kind === 'json') return source.path.slice(-1)
  return source.kind === 'usage' ? source.format.hints : []
}

function numberIn(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}(?:\.\d{1,15})?$/.test(text.trim()) ? Number(text) : undefined
}

function formOf(contentType: string): EventForm | undefined {
  const type = contentType.split(';', 1)[0]!.trim().toLowerCase()
  if (type === 'text/event-stream') return 'server-sent'
  return type.endsWith('/x-ndjson') || type.endsWith('/jsonl') || type.endsWith('/ndjson') ? 'lines' : undefined
}

/** Returns the parts of a decoded answer that would have been kept of a plain one. */
function partsOf(bytes: Buffer): Pick<AnswerEnds, 'head' | 'tail' | 'isWhole'> {
  if (bytes.length <= TAIL_BYTES + HEAD_BYTES) return { head: undefined, tail: bytes, isWhole: true }
  return { head: bytes.subarray(0, HEAD_BYTES), tail: bytes.subarray(-TAIL_BYTES), isWhole: false }
}
