import type { RuleNames } from '../../api/generated.ts'
import type { Schema } from '../../editor/schema-options.ts'

/** A number of calls in a period, or at one time if the unit is `at-once`; as it was typed. */
export interface Level {
  readonly count: string
  /** The number of units in the period; empty for one. */
  readonly every: string
  readonly unit: Unit
}

export const UNITS = ['ms', 's', 'm', 'h', 'd', 'day', 'week', 'month', 'year', 'at-once'] as const
export type Unit = (typeof UNITS)[number]

/** The limit of callers who have one value, such as those of a plan. */
export interface Plan {
  readonly name: string
  readonly level: Level
}

export type Beyond = 'refuse' | 'wait' | 'shadow'
export type BlockKind = 'none' | 'time' | 'growing' | 'manual'

/** A rule as the form shows it: every field is what was typed, right or wrong. */
export interface RuleForm {
  readonly id: string
  /** Patterns, one on each line. */
  readonly paths: string
  readonly methods: readonly string[]
  readonly by: readonly string[]
  readonly levels: readonly Level[]
  /** Undefined if the limit does not depend on the caller; then `levels` counts. */
  readonly plans: { readonly by: string; readonly values: readonly Plan[]; readonly standard: Level } | undefined
  /** Empty for the default. */
  readonly algorithm: string
  /** The options that only some algorithms have, by name. */
  readonly own: Readonly<Record<string, string>>
  readonly beyond: Beyond
  /** The status of a refusal; empty for that of the document. */
  readonly status: string
  readonly waitFor: string
  readonly countWhen: string
  readonly resetWhen: string
  readonly block: { readonly kind: BlockKind; readonly first: string; readonly max: string }
  readonly zone: string
  readonly anchor: string
}

export const emptyForm: RuleForm = {
  id: '',
  paths: '',
  methods: [],
  by: [],
  levels: [{ count: '100', every: '', unit: 'm' }],
  plans: undefined,
  algorithm: '',
  own: {},
  beyond: 'refuse',
  status: '',
  waitFor: '',
  countWhen: '',
  resetWhen: '',
  block: { kind: 'none', first: '', max: '' },
  zone: '',
  anchor: '',
}

export const METHODS: readonly string[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

const RATE = /^(\d+)\/(\d*)(ms|s|m|h|d|day|week|month|year)$/

/** Reads a limit as a rule has it; undefined if it has another form. */
export function parseLevel(limit: unknown): Level | undefined {
  if (typeof limit === 'number') return { count: String(limit), every: '', unit: 'at-once' }
  const [, count, every = '', unit] = (typeof limit === 'string' && RATE.exec(limit)) || []
  if (count === undefined || (every !== '' && isCalendar(unit as Unit))) return undefined
  return { count, every, unit: unit as Unit }
}

/** Writes a limit as a rule has it. */
export function writeLevel({ count, every, unit }: Level): string | number {
  const digits = count.trim()
  if (unit === 'at-once') return /^\d{1,15}$/.test(digits) ? Number(digits) : digits
  return `${digits}/${isCalendar(unit) ? '' : every.trim()}${unit}`
}

export function isCalendar(unit: Unit): boolean {
  return unit === 'day' || unit === 'week' || unit === 'month' || unit === 'year'
}

/** Lists all limits of a form. */
export function levelsOf({ levels, plans }: RuleForm): readonly Level[] {
  return plans === undefined ? levels : [plans.standard, ...plans.values.map(({ level }) => level)]
}

/** Returns true if the limits are numbers of calls at one time. */
export function countsAtOnce(form: RuleForm): boolean {
  return levelsOf(form).some(({ unit }) => unit === 'at-once')
}

/** An option that only some algorithms have, as the schema of the rule file describes it. */
export interface OwnOption {
  readonly name: string
  readonly description: string
  /** The values to choose from; undefined if any text may be typed. */
  readonly values: readonly string[] | undefined
  readonly isNumber: boolean
}

/** An algorithm that rules may name, with the options that only some algorithms have. */
export interface KnownAlgorithm {
  readonly name: string
  readonly limit: 'rate' | 'count'
  /** True if it can count by calendar periods. */
  readonly hasCalendar: boolean
  readonly own: readonly OwnOption[]
}

/** The names that rules may use, with the options of each algorithm. */
export interface FormNames extends RuleNames {
  readonly algorithms: readonly KnownAlgorithm[]
}

/** The options of calendar periods, which have fields of their own. */
const CALENDAR_OPTIONS = ['zone', 'anchor']

/** Adds the options that the schema of the rule file has for each algorithm: a rule is one of several objects, by its algorithm. */
export function withOptions(names: RuleNames, schema: Schema): FormNames {
  const all = schema.properties?.rules?.items?.anyOf ?? []
  const kinds = all.filter(({ properties }) => properties?.algorithm?.const !== undefined)
  const isShared = (option: string) => kinds.every(({ properties }) => properties?.[option] !== undefined)
  const algorithms = names.algorithms.map(one => {
    const { properties = {} } = kinds.find(({ properties }) => properties?.algorithm?.const === one.name) ?? {}
    const own = Object.entries(properties).filter(([option]) => !isShared(option))
    const hasCalendar = own.some(([option]) => CALENDAR_OPTIONS.includes(option))
    return { ...one, hasCalendar, own: own.flatMap(([option, schema]) => ownOption(option, schema)) }
  })
  return { ...names, algorithms }
}

/** Returns an option that a field can hold, or nothing. */
function ownOption(name: string, { description = '', type = '', enum: values }: Schema): OwnOption[] {
  if (CALENDAR_OPTIONS.includes(name) || !['string', 'integer', 'number'].includes(type)) return []
  return [{ name, description, values: values?.map(String), isNumber: type !== 'string' }]
}

/** Lists the options that the algorithm of a form has, and others have not. */
export function ownOptions(
  { algorithm }: Pick<RuleForm, 'algorithm'>,
  known: readonly KnownAlgorithm[],
): readonly OwnOption[] {
  return known.find(({ name }) => name === algorithm)?.own ?? []
}

/** Lists the algorithms that can count the limits of a form; empty text is the default. */
export function algorithmsFor(form: RuleForm, known: readonly KnownAlgorithm[]): readonly string[] {
  if (countsAtOnce(form)) return known.filter(({ limit }) => limit === 'count').map(({ name }) => name)
  const inCalendar = levelsOf(form).some(({ unit }) => isCalendar(unit))
  const fitting = known.filter(({ limit, hasCalendar }) => limit === 'rate' && (!inCalendar || hasCalendar))
  return ['', ...fitting.map(({ name }) => name)]
}

/** Returns a form with other fields, and with an algorithm that can count its limits. */
export function withFields(form: RuleForm, part: Partial<RuleForm>, known: readonly KnownAlgorithm[]): RuleForm {
  const changed = { ...form, ...part }
  const fitting = algorithmsFor(changed, known)
  const isFitting = 'algorithm' in part || fitting.includes(changed.algorithm) || !isChanged(form, changed)
  return isFitting ? changed : { ...changed, algorithm: fitting[0] ?? '' }
}

/** Returns true if the kind of the limits has changed. */
function isChanged(before: RuleForm, after: RuleForm): boolean {
  const kinds = (form: RuleForm) => [countsAtOnce(form), levelsOf(form).some(({ unit }) => isCalendar(unit))].join()
  return kinds(before) !== kinds(after)
}
