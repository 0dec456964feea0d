import type { Mistake } from 'diana-limiter'
import type { PlacedValues } from 'diana-limiter/schema'
import type { Caller, Case, Outage, RuleNames, Step } from './case-file.ts'
import { CALL_WORDS, readCaller, readStep, STEP_WORDS, type StepContext } from './read-step.ts'
import { durationUs, isMap, type Path, Reader, safe, show } from './reader.ts'

const FILE_WORDS: readonly string[] = [
  'rules',
  'begin',
  'callers',
  'include',
  'processes',
  'store',
  ...CALL_WORDS,
  'cases',
]
const CASE_WORDS: readonly string[] = ['name', 'begin', 'processes', 'store', ...CALL_WORDS, 'steps', 'table']
const OUTAGE = /^down from (\S+)(?: to (\S+))?$/
const DEFAULT_BEGIN = Date.UTC(2026, 0, 5, 12)
const MOST_CASES = 100_000
const MOST_STEPS = 100_000
const MOST_PROCESSES = 16
const MOST_OUTAGES = 100
/** Every process sends a heartbeat each second, also in virtual time. */
const LONGEST_FLEET_US = 86_400e6
/** Microseconds since 1970 are whole numbers up to here. */
const LAST_US = Date.UTC(2201, 0) * 1000

/** The contents of one file of cases. */
export interface CaseFile {
  readonly cases: readonly Case[]
  readonly mistakes: readonly Mistake[]
}

/** The files that a file of cases names; they are read before its rules are known. */
export interface CaseFileHead {
  readonly rules: string | undefined
  readonly include: readonly string[]
  readonly mistakes: readonly Mistake[]
  placeOf(word: string): { readonly file: string; readonly line: number; readonly column: number }
}

/** Reads which rules and which other files a file of cases names. */
export function readHead(values: PlacedValues, file: string): CaseFileHead {
  const reader = new Reader(file, values)
  const { value } = values
  const given = isMap(value) ? value : {}
  const rules = given.rules === undefined ? undefined : reader.text(given.rules, ['rules'], 'rules')
  const list = given.include === undefined ? [] : Array.isArray(given.include) ? given.include : [given.include]
  const include = list.flatMap((one, index) => {
    return reader.text(one, Array.isArray(given.include) ? ['include', index] : ['include'], 'include') ?? []
  })
  const mistakes = reader.mistakes.slice(values.mistakes.length)
  return { rules, include, mistakes, placeOf: word => reader.place([word]) }
}

/** Reads the cases of a file. `shared` are the callers of files that include it or that it includes. */
export function readCases(values: PlacedValues, file: string, names: RuleNames, shared: Map<string, Caller>): CaseFile {
  const reader = new Reader(file, values)
  if (values.mistakes.length > 0) return { cases: [], mistakes: reader.mistakes }
  const given = reader.map(values.value, [], FILE_WORDS, 'a file of cases')
  if (given === undefined) return { cases: [], mistakes: reader.mistakes }
  if (isMap(given.callers)) {
    for (const [name, one] of Object.entries(given.callers)) {
      const path = ['callers', name]
      if (shared.has(name)) reader.fault(path, `the caller ${show(name)} is defined twice: choose another name`, true)
      else if (isMap(one)) shared.set(name, readCaller(one, path, { reader, names }))
      else reader.fault(path, `a caller must be a map such as { ip: 203.0.113.9 }, not ${show(one)}`)
    }
  } else if (given.callers !== undefined) reader.fault(['callers'], 'callers must be a map of names and callers')
  const list = given.cases ?? []
  if (!Array.isArray(list)) {
    reader.fault(['cases'], `cases must be a list, not ${show(list)}: write a dash before each case`)
    return { cases: [], mistakes: reader.mistakes }
  }
  if (list.length === 0 && given.include === undefined && given.callers === undefined) {
    reader.fault([], 'no cases: write cases: and under it a list of cases, each with name and steps')
  }
  const scope = { reader, names, shared, given }
  if (list.length > MOST_CASES) reader.fault(['cases', MOST_CASES], `more than ${MOST_CASES} cases: use several files`)
  const cases = list.slice(0, MOST_CASES).flatMap((one, index) => readCase(one, ['cases', index], scope) ?? [])
  const seen = new Set<string>()
  for (const { name, place } of cases) {
    if (seen.has(name))
      reader.mistakes.push({ ...place, message: `the case ${show(name)} is there twice: choose another name` })
    seen.add(name)
  }
  return { cases, mistakes: reader.mistakes }
}

interface Scope {
  readonly reader: Reader
  readonly names: RuleNames
  readonly shared: ReadonlyMap<string, Caller>
  readonly given: Readonly<Record<string, unknown>>
}

function readCase(value: unknown, path: Path, { reader, names, shared, given: file }: Scope): Case | undefined {
  const given = reader.map(value, path, CASE_WORDS, 'a case')
  if (given === undefined) return undefined
  const inherited = (word: string): [value: unknown, path: Path] =>
    given[word] === undefined ? [file[word], [word]] : [given[word], [...path, word]]
  if (given.name === undefined) reader.fault(path, 'this case has no name: say in a few words what it shows')
  const name = given.name === undefined ? '' : safe(reader.text(given.name, [...path, 'name'], 'name', 500) ?? '')
  const [count, countPath] = inherited('processes')
  const processes = count === undefined ? 1 : (reader.whole(count, countPath, 'processes', 1, MOST_PROCESSES) ?? 1)
  const outages = readOutages(...inherited('store'), reader)
  const beginUs = readBegin(...inherited('begin'), reader)
  const context: StepContext = { reader, names, callers: shared, processes }
  const usual = Object.fromEntries(CALL_WORDS.map(word => [word, inherited(word)]))
  const steps = readSteps(given, path, usual, context)
  const lastUs = endOf(steps.at(-1))
  if (beginUs + lastUs > LAST_US)
    reader.fault(path, 'this case ends after the year 2200: begin earlier, or let it last shorter')
  if ((processes > 1 || outages.length > 0) && lastUs > LONGEST_FLEET_US) {
    reader.fault(
      path,
      'this case lasts longer than a day: cases with several processes or with outages last at most 1d',
    )
  }
  return { name, place: reader.place(path), beginUs, processes, outages, steps }
}

type Inherited = Readonly<Record<string, [value: unknown, path: Path]>>

function readSteps(
  given: Readonly<Record<string, unknown>>,
  path: Path,
  usual: Inherited,
  context: StepContext,
): Step[] {
  const { reader } = context
  const rows = [...listedSteps(given, path, reader), ...tableRows(given.table, [...path, 'table'], reader)]
  if (given.steps !== undefined && given.table !== undefined) {
    reader.fault([...path, 'table'], 'table stands beside steps: keep one of them')
  }
  const isEmpty = [given.steps, given.table].every(one => one === undefined || (Array.isArray(one) && one.length < 1))
  if (isEmpty || (rows.length === 0 && Array.isArray(given.table) && given.table.length === 1))
    reader.fault(path, 'this case has no steps: write steps: and a list of calls, or a table:')
  if (rows.length > MOST_STEPS) reader.fault(path, `this case has more than ${MOST_STEPS} steps: use repeat`)
  const steps: Step[] = []
  for (const { words, whereIs, at } of rows.slice(0, MOST_STEPS)) {
    const merged: Record<string, unknown> = {}
    for (const [word, [value]] of Object.entries(usual)) if (value !== undefined) merged[word] = value
    Object.assign(merged, words)
    // headers of a step are added to those of its case
    if (isMap(words.headers) && isMap(usual.headers?.[0])) merged.headers = { ...usual.headers[0], ...words.headers }
    const place = (word: string): Path => (word in words ? whereIs(word) : (usual[word]?.[1] ?? at))
    const step = readStep(merged, place, at, endOf(steps.at(-1)), context)
    if (step !== undefined) steps.push(step)
  }
  return steps
}

interface Row {
  readonly words: Readonly<Record<string, unknown>>
  readonly at: Path
  whereIs(word: string): Path
}

function listedSteps(given: Readonly<Record<string, unknown>>, path: Path, reader: Reader): Row[] {
  const steps = given.steps === undefined ? [] : given.steps
  if (!Array.isArray(steps)) {
    reader.fault([...path, 'steps'], `steps must be a list, not ${show(steps)}`)
    return []
  }
  return steps.flatMap((one, index) => {
    const at = [...path, 'steps', index]
    const words = reader.map(one, at, STEP_WORDS, 'a step')
    return words === undefined ? [] : [{ words, at, whereIs: (word: string) => [...at, word] }]
  })
}

/** Reads a table, which is a list of lists: the first has the words, the others a step each. An empty cell leaves its word out. */
function tableRows(value: unknown, path: Path, reader: Reader): Row[] {
  if (value === undefined) return []
  const remedy = 'write lists: first the words, as in [at, cost, expect], then a list for each step'
  if (!Array.isArray(value) || !value.every(Array.isArray)) {
    reader.fault(path, `table must be a list of lists: ${remedy}`)
    return []
  }
  const [head = [], ...rows] = value as unknown[][]
  const words = head.map(String)
  for (const [index, word] of words.entries()) {
    if (!STEP_WORDS.includes(word)) reader.unknown(word, [...path, 0, index], STEP_WORDS)
    else if (words.indexOf(word) < index)
      reader.fault([...path, 0, index], `${show(word)} is given twice here: keep one of them`)
  }
  return rows.flatMap((row, number) => {
    const at = [...path, number + 1]
    if (row.length !== words.length) {
      reader.fault(
        at,
        `this row has ${row.length} cells, and the first one has ${words.length}: write one for each word`,
      )
      return []
    }
    const cells = words
      .map((word, index) => [word, row[index]] as const)
      .filter(([, cell]) => cell !== null && cell !== '')
    return [{ words: Object.fromEntries(cells), at, whereIs: (word: string) => [...at, words.indexOf(word)] }]
  })
}

/** Returns the moment of the last call of a step. */
export function endOf(step: Step | undefined): number {
  return step === undefined ? 0 : step.atUs + Math.round((step.loop.calls - 1) * step.loop.everyUs)
}

function readOutages(value: unknown, path: Path, reader: Reader): Outage[] {
  const list = value === undefined ? [] : Array.isArray(value) ? value : [value]
  const outages = list.slice(0, MOST_OUTAGES).flatMap((one, index) => {
    const [, from, to] = OUTAGE.exec(String(one).trim()) ?? []
    const fromUs = from === undefined ? undefined : durationUs(from)
    const toUs = to === undefined ? Number.POSITIVE_INFINITY : durationUs(to)
    if (fromUs !== undefined && toUs !== undefined && toUs > fromUs) return [{ fromUs, toUs }]
    const at = Array.isArray(value) ? [...path, index] : path
    return reader.fault(at, `store must be such as down from 10s to 20s, not ${show(one)}`) ?? []
  })
  if (list.length > MOST_OUTAGES)
    reader.fault(path, `the store is down more than ${MOST_OUTAGES} times: leave some out`)
  outages.sort((one, other) => one.fromUs - other.fromUs)
  if (outages.some(({ fromUs }, index) => index > 0 && fromUs < outages[index - 1]!.toUs)) {
    reader.fault(path, 'two of these times overlap: write them as one')
  }
  return outages
}

function readBegin(value: unknown, path: Path, reader: Reader): number {
  if (value === undefined) return DEFAULT_BEGIN * 1000
  const text = String(value)
  const ms = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d))?$/.test(text)
    ? Date.parse(text)
    : Number.NaN
  // a day that the month does not have would be one of the next month
  const isDay = new Date(`${text.slice(0, 10)}T00:00Z`).getUTCDate() === Number(text.slice(8, 10))
  if (ms >= 0 && isDay) return ms * 1000
  reader.fault(path, `begin must be a date, or a moment such as 2026-03-28T12:00:00+01:00, not ${show(value)}`)
  return DEFAULT_BEGIN * 1000
}
