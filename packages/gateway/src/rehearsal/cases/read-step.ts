import { networkFault } from 'diana-limiter/schema'
import type { Caller, Loop, RuleNames, Step } from './case-file.ts'
import { readExpectation, readTexts } from './expectation.ts'
import { durationUs, isMap, type Path, type Reader, show } from './reader.ts'

/** The words of a step; a case, and a file, may have the same words for all of its steps. */
export const CALL_WORDS: readonly string[] = [
  ...['call', 'message', 'who', 'headers', 'cost', 'takes', 'ends', 'settle', 'rule', 'process', 'body'],
]
export const STEP_WORDS: readonly string[] = ['at', 'after', ...CALL_WORDS, 'repeat', 'expect']
export const CALLER_WORDS: readonly string[] = ['ip', 'host', 'headers', 'attributes']

const MOST_CALLS = 10_000_000
const MOST_COST = 1_000_000_000_000
const LOOP = /^(\d{1,9})(?: calls?)?(?:(?: in| within) (\S+)|,? (?:one )?every (\S+))?$/
const METHOD = /^[A-Z][A-Z-]{0,29}$/
const SPECIAL = /^(header|cookie|attribute):(.+)$/

export interface StepContext {
  readonly reader: Reader
  readonly names: RuleNames
  readonly callers: ReadonlyMap<string, Caller>
  readonly processes: number
}

/** Returns the place of a value of a step: a row of a table has its own places. */
export type WhereIs = (word: string) => Path

/** Reads a step out of its own words and those of its case. `previousUs` is when the step before it has made its last call. */
export function readStep(
  given: Readonly<Record<string, unknown>>,
  whereIs: WhereIs,
  path: Path,
  previousUs: number,
  context: StepContext,
): Step | undefined {
  const { reader, names } = context
  const atUs = momentOf(given, whereIs, previousUs, reader)
  const [method, target] = readCall(given.call, whereIs('call'), path, reader)
  const who = readWho(given.who, whereIs('who'), context)
  const headers = given.headers === undefined ? {} : readTexts(reader, given.headers, whereIs('headers'), 'headers')
  const whole = (word: string, least: number, most: number): number | undefined =>
    given[word] === undefined ? undefined : reader.whole(given[word], whereIs(word), word, least, most)
  const takesUs = given.takes === undefined ? 0 : (reader.duration(given.takes, whereIs('takes'), 'takes') ?? 0)
  const rule = given.rule === undefined ? undefined : reader.text(given.rule, whereIs('rule'), 'rule')
  if (rule !== undefined) reader.name(rule, whereIs('rule'), names.rules, 'rule')
  return {
    place: reader.place(path),
    atUs,
    method,
    target,
    who: { ...who, headers: { ...who.headers, ...headers } },
    isMessage: readMessage(given.message, whereIs('message'), reader),
    cost: whole('cost', 0, 1_000_000_000),
    loop: readLoop(given.repeat, whereIs('repeat'), reader),
    takesUs,
    ends: readEnding(given.ends, whereIs('ends'), reader),
    settle: readSettle(given.settle, whereIs('settle'), context),
    rule,
    process: whole('process', 1, context.processes) ?? 1,
    body: given.body,
    expect: readExpectation(reader, given.expect, given.expect === undefined ? path : whereIs('expect'), names),
  }
}

function readMessage(value: unknown, path: Path, reader: Reader): boolean {
  if (value === undefined || typeof value === 'boolean') return value === true
  reader.fault(path, `message must be true or false, not ${show(value)}`)
  return false
}

/** Reads the cost of a call in the end: by all rules, or by rules of their own units. */
function readSettle(value: unknown, path: Path, { reader, names }: StepContext): Step['settle'] {
  if (value === undefined) return undefined
  if (!isMap(value)) return reader.whole(value, path, 'settle', 0, MOST_COST)
  const costs: Record<string, number> = {}
  for (const [rule, cost] of Object.entries(value)) {
    const at = [...path, rule]
    reader.name(rule, at, names.rules, 'rule')
    costs[rule] = reader.whole(cost, at, 'settle', 0, MOST_COST) ?? 0
  }
  return costs
}

function momentOf(
  given: Readonly<Record<string, unknown>>,
  whereIs: WhereIs,
  previousUs: number,
  reader: Reader,
): number {
  if (given.at !== undefined && given.after !== undefined) {
    reader.fault(whereIs('after'), 'after stands beside at: keep one of them')
  }
  if (given.after !== undefined) return previousUs + (reader.duration(given.after, whereIs('after'), 'after') ?? 0)
  if (given.at === undefined) return previousUs
  const atUs = reader.duration(given.at, whereIs('at'), 'at') ?? previousUs
  if (atUs >= previousUs) return atUs
  reader.fault(
    whereIs('at'),
    `at ${show(given.at)} is earlier than the step before: write the steps in the order of time`,
  )
  return previousUs
}

function readCall(value: unknown, path: Path, step: Path, reader: Reader): [method: string, target: string] {
  if (value === undefined) {
    reader.fault(step, 'call is missing: write call: GET /path, here or for the whole case')
    return ['GET', '/']
  }
  const [method = '', target = '', ...more] = String(value).trim().split(/\s+/)
  if (METHOD.test(method) && /^[/*]/.test(target) && target.length <= 8192 && more.length === 0) return [method, target]
  const meant =
    METHOD.test(method.toUpperCase()) && target.startsWith('/')
      ? `: did you mean ${method.toUpperCase()} ${target}?`
      : ''
  reader.fault(path, `call must be a method and a path, such as GET /orders, not ${show(value)}${meant}`)
  return ['GET', '/']
}

function readLoop(value: unknown, path: Path, reader: Reader): Loop {
  if (value === undefined) return { calls: 1, everyUs: 0 }
  const found = LOOP.exec(String(value).trim())
  const calls = Number(found?.[1])
  const overUs = found?.[2] === undefined ? 0 : durationUs(found[2])
  const everyUs = found?.[3] === undefined ? undefined : durationUs(found[3])
  if (
    found === null ||
    calls < 1 ||
    calls > MOST_CALLS ||
    overUs === undefined ||
    (found[3] && everyUs === undefined)
  ) {
    reader.fault(
      path,
      `repeat must be such as 200, 200 calls in 1s or 200 calls every 5ms, at most ${MOST_CALLS} calls, not ${show(value)}`,
    )
    return { calls: 1, everyUs: 0 }
  }
  return { calls, everyUs: everyUs ?? overUs / calls }
}

function readEnding(value: unknown, path: Path, reader: Reader): number {
  if (value === undefined) return 200
  if (value === 'left') return 0
  const status = Number(value)
  if (Number.isInteger(status) && status >= 200 && status <= 599) return status
  reader.fault(path, `ends must be a status from 200 to 599, or left if the caller leaves, not ${show(value)}`)
  return 200
}

function readWho(value: unknown, path: Path, context: StepContext): Caller {
  if (value === undefined) return { headers: {}, attributes: {} }
  if (isMap(value)) return readCaller(value, path, context)
  const { reader, callers } = context
  const known = callers.get(String(value))
  if (known !== undefined) return known
  const names = [...callers.keys()]
  const remedy =
    names.length === 0 ? 'write callers: { ann: { ip: 203.0.113.9 } } at the top of the file, or a map here' : ''
  if (remedy !== '') reader.fault(path, `there is no caller ${show(value)}: ${remedy}`)
  else reader.unknown(String(value), path, names)
  return { headers: {}, attributes: {} }
}

/** Reads a caller: an address, headers, cookies, and the values of dimensions that the application knows. */
export function readCaller(
  value: Readonly<Record<string, unknown>>,
  path: Path,
  { reader, names }: Pick<StepContext, 'reader' | 'names'>,
): Caller {
  const headers: Record<string, string> = {}
  let attributes: Record<string, string> = {}
  let ip: string | undefined
  let host: string | undefined
  for (const [name, one] of Object.entries(value)) {
    const at = [...path, name]
    const [, kind, rest = ''] = SPECIAL.exec(name) ?? []
    if (name === 'headers') Object.assign(headers, readTexts(reader, one, at, 'headers'))
    else if (name === 'attributes') attributes = { ...attributes, ...readAttributes(reader, one, at) }
    else if (!CALLER_WORDS.includes(name) && kind === undefined && !names.dimensions.includes(name)) {
      reader.unknown(name, at, [...CALLER_WORDS, ...names.dimensions])
    } else {
      const text = reader.text(one, at, name)
      if (text === undefined) continue
      if (name === 'ip') ip = readAddress(reader, text, at)
      else if (name === 'host') host = text
      else if (kind === 'header') headers[rest.toLowerCase()] = text
      else if (kind === 'cookie')
        headers.cookie = headers.cookie ? `${headers.cookie}; ${rest}=${text}` : `${rest}=${text}`
      else attributes[kind === 'attribute' ? rest : name] = text
    }
  }
  return { ip, host, headers, attributes }
}

function readAttributes(reader: Reader, value: unknown, path: Path): Record<string, string> {
  if (!isMap(value)) {
    reader.fault(path, `attributes must be a map of names and texts, not ${show(value)}`)
    return {}
  }
  const entries = Object.entries(value).map(([name, one]) => [name, reader.text(one, [...path, name], name) ?? ''])
  return Object.fromEntries(entries)
}

/** Checks an address, in which `{n}` is replaced before. */
function readAddress(reader: Reader, text: string, path: Path): string {
  const fault = networkFault(text.replaceAll('{n}', '1'))
  if (fault !== undefined || text.includes('/')) reader.fault(path, `ip must be an address, not ${show(text)}`)
  return text
}
