import { isMap, type Options } from './form-options.ts'
import {
  type Beyond,
  emptyForm,
  type KnownAlgorithm,
  type Level,
  ownOptions,
  parseLevel,
  type RuleForm,
} from './rule-form.ts'

/** A rule in a form, with the options that the form leaves as they are; or which options it cannot show. */
export type ReadForm =
  | { readonly form: RuleForm; readonly others: Options; readonly unreadable?: undefined }
  | { readonly form?: undefined; readonly others?: undefined; readonly unreadable: readonly string[] }

/** Options that the form knows, and those inside them. */
const KNOWN: Readonly<Record<string, readonly string[] | true>> = {
  id: true,
  match: ['path', 'method'],
  by: true,
  limit: ['by', 'values', 'default'],
  algorithm: true,
  zone: true,
  anchor: true,
  countWhen: true,
  resetWhen: true,
  block: ['first', 'max'],
  whenFull: true,
  queue: ['timeout'],
  answer: ['status'],
}

/** Fills a form from the options of a rule. */
export function readForm(rule: Options, algorithms: readonly KnownAlgorithm[]): ReadForm {
  const readers = Object.entries(READERS).map(([name, read]) => [name, read(rule[name])] as const)
  const unreadable = readers.filter(([, part]) => part === undefined).map(([name]) => name)
  if (unreadable.length > 0) return { unreadable }
  const form: RuleForm = Object.assign({}, emptyForm, ...readers.map(([, part]) => part))
  const own = ownOptions(form, algorithms).filter(({ name }) => isText(rule[name]))
  const others = Object.fromEntries(Object.entries(rule).filter(([name]) => !own.some(option => option.name === name)))
  return {
    form: { ...form, own: Object.fromEntries(own.map(({ name }) => [name, String(rule[name])])) },
    others: othersOf(others),
  }
}

type Part = Partial<RuleForm>

/** Each reads one option; undefined if it has a form that the fields cannot hold. */
const READERS: Readonly<Record<string, (value: unknown) => Part | undefined>> = {
  id: value => (typeof value === 'string' ? { id: value } : undefined),
  match: readMatch,
  by: value => whenTexts(value, by => ({ by })),
  limit: readLimit,
  algorithm: value => whenText(value, algorithm => ({ algorithm })),
  zone: value => whenText(value, zone => ({ zone })),
  anchor: value => whenText(value, anchor => ({ anchor })),
  countWhen: value => whenTexts(value, words => ({ countWhen: words.join(', ') })),
  resetWhen: value => whenTexts(value, words => ({ resetWhen: words.join(', ') })),
  block: readBlock,
  whenFull: value =>
    value === undefined || value === 'refuse' || value === 'wait' || value === 'shadow'
      ? { beyond: (value ?? 'refuse') as Beyond }
      : undefined,
  queue: value => whenMap(value, ({ timeout }) => whenText(timeout, waitFor => ({ waitFor }))),
  answer: value => whenMap(value, ({ status }) => whenText(status, text => ({ status: text }))),
}

function readMatch(value: unknown): Part | undefined {
  return whenMap(value, ({ path, method }) => {
    const paths = whenTexts(path, texts => ({ paths: texts.join('\n') }))
    const methods = whenTexts(method, texts => ({ methods: texts.map(text => text.toUpperCase()) }))
    return paths && methods && { ...paths, ...methods }
  })
}

function readLimit(value: unknown): Part | undefined {
  if (isMap(value)) return readPlans(value)
  const levels = [value].flat().map(parseLevel)
  return levels.length > 0 && isFull(levels) ? { levels } : undefined
}

function readPlans({ by = '', values = {}, default: standard }: Options): Part | undefined {
  const level = parseLevel(standard)
  if (level === undefined || typeof by !== 'string' || !isMap(values)) return undefined
  const plans = Object.entries(values).map(([name, limit]) => ({ name, level: parseLevel(limit) }))
  if (!isFull(plans.map(plan => plan.level))) return undefined
  return { plans: { by, values: plans.map(plan => ({ ...plan, level: plan.level! })), standard: level } }
}

function readBlock(value: unknown): Part | undefined {
  if (value === undefined) return {}
  if (value === 'manual') return { block: { kind: 'manual', first: '', max: '' } }
  if (typeof value === 'string') return { block: { kind: 'time', first: value, max: '' } }
  if (!isMap(value)) return undefined
  const { first, max = '' } = value
  if (typeof first !== 'string' || typeof max !== 'string') return undefined
  return { block: { kind: 'growing', first, max } }
}

/** Returns the options that the form leaves as they are, also inside options that it knows. */
function othersOf(rule: Options): Options {
  const others = Object.entries(rule).flatMap(([name, value]) => {
    const known = Object.hasOwn(KNOWN, name) ? KNOWN[name]! : []
    if (known === true || (!isMap(value) && known.length > 0)) return []
    if (!isMap(value) || known.length === 0) return [[name, value] as const]
    const inner = Object.entries(value).filter(([word]) => !known.includes(word))
    return inner.length === 0 ? [] : [[name, Object.fromEntries(inner)] as const]
  })
  return Object.fromEntries(others)
}

function isFull(levels: readonly (Level | undefined)[]): levels is readonly Level[] {
  return !levels.includes(undefined)
}

function whenText(value: unknown, make: (text: string) => Part): Part | undefined {
  if (value === undefined) return {}
  return isText(value) ? make(String(value)) : undefined
}

function isText(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number'
}

function whenTexts(value: unknown, make: (texts: readonly string[]) => Part): Part | undefined {
  if (value === undefined) return {}
  const all = [value].flat()
  return all.every(isText) ? make(all.map(String)) : undefined
}

function whenMap(value: unknown, make: (map: Options) => Part | undefined): Part | undefined {
  if (value === undefined) return {}
  return isMap(value) ? make(value) : undefined
}
