import { isCalendar, type KnownAlgorithm, levelsOf, ownOptions, type RuleForm, writeLevel } from './rule-form.ts'

export type Options = Readonly<Record<string, unknown>>

/** One option of a rule to set; null removes it. */
export interface OptionChange {
  readonly path: readonly string[]
  readonly value: unknown
}

/** Returns the options of a rule that a form stands for, in the order in which a rule is read. */
export function formOptions(form: RuleForm, known: readonly KnownAlgorithm[]): Options {
  const { id, methods, by, plans, algorithm, beyond, status, zone, anchor } = form
  const paths = form.paths.split('\n').map(path => path.trim())
  const match = { path: oneOrAll(paths.filter(path => path !== '')), method: oneOrAll(methods) }
  const own = ownOptions(form, known).map(({ name, isNumber }) => {
    const text = form.own[name] ?? ''
    return [name, isNumber ? numberOrText(text) : text.trim() || undefined] as const
  })
  const calendar = levelsOf(form).some(({ unit }) => isCalendar(unit))
  return given({
    id: id.trim(),
    match: given(match),
    by: oneOrAll(by),
    limit: plans === undefined ? oneOrAll(form.levels.map(writeLevel)) : planLimit(plans),
    algorithm: algorithm || undefined,
    ...Object.fromEntries(own),
    zone: calendar ? zone.trim() || undefined : undefined,
    anchor: calendar ? numberOrText(anchor) : undefined,
    countWhen: oneOrAll(wordsIn(form.countWhen)),
    resetWhen: oneOrAll(wordsIn(form.resetWhen)),
    block: blockOption(form.block),
    whenFull: beyond === 'refuse' ? undefined : beyond,
    queue: beyond === 'wait' ? given({ timeout: form.waitFor.trim() || undefined }) : undefined,
    answer: given({ status: numberOrText(status) }),
  }) as Options
}

/**
 * Lists the options to set in a rule to turn one form into another. `rule` has all options of the rule: those that the form does not know
 * stay, also inside an option that it knows.
 */
export function changesBetween(rule: Options, before: Options, after: Options): OptionChange[] {
  return differences(rule, before, after, [])
}

/** Options inside these belong to the form as a whole: they end with what they are part of. */
const WHOLE = ['queue', 'block', 'limit']

function differences(rule: Options, before: Options, after: Options, path: readonly string[]): OptionChange[] {
  const names = [
    ...new Set([
      ...Object.keys(before),
      ...Object.keys(after),
      ...WHOLE.filter(name => path.length === 0 && name in rule),
    ]),
  ]
  return names.flatMap(name => {
    const [old, fresh, written] = [before[name], after[name], rule[name]]
    const here = [...path, name]
    if (fresh === undefined && WHOLE.includes(name)) return written === undefined ? [] : [{ path: here, value: null }]
    if (JSON.stringify(old) === JSON.stringify(fresh)) return []
    const hasOthers = isMap(written) && Object.keys(written).some(inner => !isMap(old) || !(inner in old))
    if (isMap(written) && (isMap(fresh) || (fresh === undefined && hasOthers))) {
      return differences(written, isMap(old) ? old : {}, isMap(fresh) ? fresh : {}, here)
    }
    return [{ path: here, value: fresh ?? null }]
  })
}

export function isMap(value: unknown): value is Options {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function planLimit({ by, values, standard }: NonNullable<RuleForm['plans']>): unknown {
  const named = values
    .filter(({ name }) => name.trim() !== '')
    .map(({ name, level }) => [name.trim(), writeLevel(level)])
  return given({
    by: by.trim() || undefined,
    values: named.length === 0 ? undefined : Object.fromEntries(named),
    default: writeLevel(standard),
  })
}

function blockOption({ kind, first, max }: RuleForm['block']): unknown {
  if (kind === 'none') return undefined
  if (kind === 'manual') return 'manual'
  if (kind === 'time') return first.trim()
  return given({ first: first.trim(), max: max.trim() || undefined })
}

/** Words of a list as they were typed: `401, 5xx`. */
function wordsIn(text: string): readonly (string | number | undefined)[] {
  return text.split(/[\s,]+/).flatMap(word => (word === '' ? [] : [numberOrText(word)]))
}

function numberOrText(text: string): number | string | undefined {
  const word = text.trim()
  return /^\d{1,15}(?:\.\d{1,15})?$/.test(word) ? Number(word) : word || undefined
}

function oneOrAll(values: readonly unknown[]): unknown {
  return values.length > 1 ? values : values[0]
}

/** Leaves out options that are not set; undefined if there is none. */
function given(options: Readonly<Record<string, unknown>>): Options | undefined {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined)
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}
