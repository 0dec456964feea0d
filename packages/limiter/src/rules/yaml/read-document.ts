import * as z from '../../shapes/index.ts'
import { foldStatus } from '../answer-option.ts'
import { explain, type Problem } from '../explain.ts'
import { isMap } from '../is-map.ts'
import { createRuleReader } from '../read-rule.ts'
import type { Rule, RuleDocument } from '../rule.ts'
import { remoteSchemaFor } from '../schema/remote.ts'
import { documentSchema, MAX_NAMES, MAX_RULES } from '../schema/schema.ts'
import { sectionsWith } from '../schema/section.ts'
import type { Vocabulary } from '../schema/vocabulary.ts'
import { show } from '../show.ts'
import { readEnvironment } from './environment.ts'

// rules are in the order of their lines, so mistakes behind this number would not be reported
const ENOUGH = 50

/** Reads a document out of plain values, or all that is wrong with it. */
export function readDocument(
  given: unknown,
  known: Vocabulary,
  leastRules: number,
): { readonly document?: RuleDocument; readonly problems: readonly Problem[] } {
  if (!isMap(given)) {
    const what = `must be a map with a list of rules in it (rules: …), not ${show(given)}`
    return { problems: [{ path: [], atName: false, what }] }
  }
  const { document: whole, problems: unset } = readEnvironment(given)
  const { options: value, problems: double, asGiven } = foldStatus(whole)
  const vocabulary = { ...known, givenOptions: Object.keys(value) }
  const remote = remoteSchemaFor(value.remote, vocabulary)
  const identified = isMap(value.identify) ? Object.keys(value.identify).slice(0, MAX_NAMES) : []
  const read = explain(documentSchema(vocabulary, z.unknown(), remote, leastRules, identified), value)
  const wrong = [...double, ...asGiven(read.problems)]
  const { rules, problems } = readRules(value, { vocabulary, identified, hasStore: value.store !== undefined })
  if (unset.length > 0 || wrong.length > 0 || !read.data) {
    return { problems: [...unset, ...besides(wrong, unset), ...problems] }
  }
  if (problems.length > 0) return { problems }
  const { plugins, ...kept } = read.data
  const named = plugins.length > 0 ? { plugins } : {}
  const states = isMap(value) && value.trustProxy !== undefined ? { statesProxies: true } : {}
  return { document: { ...apart(kept, vocabulary), ...named, rules, ...states }, problems }
}

/** Leaves out problems with the value of an option that is reported for having none. */
function besides(problems: readonly Problem[], unset: readonly Problem[]): Problem[] {
  const places = unset.map(({ path }) => path.join('.'))
  return problems.filter(({ path }) => !places.some(place => place.startsWith(path.join('.'))))
}

/** Separates the options about rules from the sections of other programs. */
function apart<Document extends object>(
  input: Document,
  { sections }: Vocabulary,
): Document & Pick<RuleDocument, 'sections'> {
  const names = sectionsWith(sections)
    .map(({ name }) => name)
    .filter(name => name in input)
  if (names.length === 0) return input
  const entries = Object.entries(input)
  const own = entries.filter(([name]) => !names.includes(name))
  return {
    ...(Object.fromEntries(own) as Document),
    sections: Object.fromEntries(entries.filter(([name]) => names.includes(name))),
  }
}

export interface RemoteOptions {
  /** Limits may come from addresses that the local document does not name: what is read may become part of it. */
  readonly anyAddress?: boolean | undefined
}

/** Reads the document of a config center: rules, and nothing that could repoint the store or the identity of callers. */
export function readRemoteDocument(
  value: unknown,
  given: Vocabulary,
  local: RuleDocument,
  { anyAddress = false }: RemoteOptions = {},
): { readonly document?: RuleDocument; readonly problems: readonly Problem[] } {
  if (!isMap(value)) {
    return {
      problems: [{ path: [], atName: false, what: `must be a map with a list of rules in it, not ${show(value)}` }],
    }
  }
  const foreign = Object.keys(value).filter(name => name !== 'rules')
  const unknownFields = foreign.slice(0, ENOUGH).map(name => {
    return { path: [name], atName: true, what: 'has no place here: a remote document carries rules only' }
  })
  const shape = explain(z.object({ rules: z.array(z.unknown()).min(1).max(MAX_RULES) }), value)
  const identified = Object.keys(local.identify)
  const vocabulary = { ...given, givenOptions: optionsOf(local) }
  const { rules, problems } = readRules(value, { vocabulary, identified, hasStore: local.store !== undefined })
  const all = [
    ...unknownFields,
    ...(shape.problems ?? []),
    ...problems,
    ...(anyAddress ? [] : foreignAddresses(value.rules, local)),
  ]
  return all.length > 0 ? { problems: all } : { document: { ...local, rules }, problems: [] }
}

/** Limits of a remote rule come over connections that the local document has named: its store, or an address of one of its rules. */
function foreignAddresses(given: unknown, local: RuleDocument): Problem[] {
  const named = new Set(local.rules.map(({ plans }) => plans?.from?.address))
  const rules = Array.isArray(given) ? given.slice(0, MAX_RULES) : []
  return rules.flatMap((rule, index) => {
    const from = isMap(rule) && isMap(rule.limit) ? rule.limit.from : undefined
    if (typeof from !== 'string' || /^redis:(?!\/\/)/.test(from) || named.has(from)) return []
    const remedy = 'write redis:<key>, or name it in a rule of the local file too'
    const what = `must not be ${show(from)}: a remote document cannot choose where this process connects; ${remedy}`
    return [{ path: ['rules', index, 'limit', 'from'], atName: false, what }]
  })
}

function readRules(
  value: Readonly<Record<string, unknown>>,
  known: Parameters<typeof createRuleReader>[0],
): { readonly rules: readonly Rule[]; readonly problems: readonly Problem[] } {
  const given = Array.isArray(value.rules) && value.rules.length <= MAX_RULES ? value.rules : []
  const read = createRuleReader(known)
  const rules: Rule[] = []
  const problems: Problem[] = []
  const ids = new Set<unknown>()
  for (const [index, input] of given.entries()) {
    if (problems.length >= ENOUGH) break
    const at = ['rules', index]
    const one = read(input)
    if (one.rule) rules.push(one.rule)
    for (const problem of one.problems) problems.push({ ...problem, path: [...at, ...problem.path] })
    const id = isMap(input) ? input.id : undefined
    if (id !== undefined && ids.has(id)) {
      const what = `${show(id)} is the id of an earlier rule too: give each rule its own`
      problems.push({ path: [...at, 'id'], atName: false, what })
    }
    ids.add(id)
  }
  return { rules, problems }
}

/** Returns the names of the options that a document has. */
export function optionsOf(document: Partial<RuleDocument>): string[] {
  return Object.entries(document).flatMap(([name, value]) => (value === undefined ? [] : [name]))
}
