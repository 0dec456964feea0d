import { adminOf } from 'diana-limiter/admin'
import { z } from 'diana-limiter/schema'
import type { Finding } from '../../rehearsal/bounds/findings.ts'
import { mistakeOf } from './documents.ts'
import { type Operation, operation } from './operation.ts'
import { comment, mistake, ruleChange, ruleDocument, text, where } from './shapes.ts'

const mostCharacters = 16_384
const deepest = 8
const mostCompared = 200
const mostFindings = 50

const option = z
  .string()
  .min(1)
  .max(1024)
  .refine(name => name !== '__proto__', 'is no name of an option')
const changes = z
  .array(z.strictObject({ path: z.array(option).min(1).max(4), value: z.unknown() }))
  .max(100)
  .refine(value => isShallow(value), { error: 'is nested too deep for a rule', abort: true })
  .refine(value => JSON.stringify(value).length <= mostCharacters, `is longer than ${mostCharacters} characters`)
  .describe('options by their paths, such as ["match", "path"]; null removes one')

export const draftOperations: readonly Operation[] = [
  operation({
    method: 'POST',
    path: '/draft',
    summary:
      'A document with some options of a rule changed, or with a new rule, and what is wrong with it; nothing is written. All other text of the document stays as it is.',
    body: z.strictObject({
      where: where.default('local'),
      id: z.string().max(80).optional().describe('the rule to change; left out, a rule is added'),
      set: changes.default([]),
    }),
    answer: z
      .object({
        base: ruleDocument,
        text: z.string().describe('the document with the change'),
        rule: z.string().describe('the rule as it is written there'),
        options: z.record(z.string(), z.unknown()).describe('the options of the rule'),
        mistakes: z.array(mistake),
      })
      .meta({ title: 'RuleDraft' }),
    refusals: { 422: 'the rule is not there, or cannot be changed by itself', 502: 'its source failed' },
    run: async ({ body }, { limiter }) => {
      const { documents } = adminOf(limiter)
      const base = await documents.read(body.where)
      const edited = await documents.editOptions(base.text, body.id, body.set)
      const mistakes = await documents.check(body.where, edited.text)
      return { base, ...edited, mistakes: mistakes.map(mistakeOf) }
    },
  }),
  operation({
    method: 'POST',
    path: '/changes',
    summary:
      'Which rules a text would add, change and remove, and the text with a comment above those that it adds or changes; nothing is written.',
    body: z.strictObject({ where: where.default('local'), text, comment }),
    answer: z
      .object({
        rules: z.array(ruleChange),
        others: z.boolean().describe('Whether options beside the rules differ.'),
        findings: z
          .array(z.object({ rule: z.string(), message: z.string(), isFault: z.boolean() }))
          .describe('rules that never match, can never refuse or are shadowed, and what else `diana bound` finds odd'),
        noted: z.string().optional().describe('the text with the comment; left out if it cannot stand there'),
      })
      .meta({ title: 'DocumentChange' }),
    refusals: { 502: 'its source failed' },
    run: async ({ body }, { limiter }) => {
      const { documents } = adminOf(limiter)
      const { text: before } = await documents.read(body.where)
      const change = await documents.change(before, body.text)
      const noted = body.comment === undefined ? undefined : await documents.note(before, body.text, body.comment)
      const findings = await findingsOf(documents, body.where, body.text)
      return { ...change, findings, ...(noted !== undefined && { noted }) }
    },
  }),
  operation({
    method: 'GET',
    path: '/names',
    summary:
      'The names that rules may use: algorithms, and dimensions to count by, with those that `identify` defines.',
    answer: z
      .object({
        algorithms: z.array(z.object({ name: z.string(), limit: z.enum(['rate', 'count']) })),
        dimensions: z.array(z.string()).describe('those that stand alone'),
        namedDimensions: z.array(z.string()).describe('those that need a name behind a colon, such as header'),
      })
      .meta({ title: 'RuleNames' }),
    run: (_, { limiter }) => adminOf(limiter).ruleNames,
  }),
]

/** Finds what is odd about the rules of a text; nothing if it cannot be used, or has too many rules to compare while calls wait. */
async function findingsOf(
  documents: ReturnType<typeof adminOf>['documents'],
  from: 'local' | 'remote',
  written: string,
): Promise<Pick<Finding, 'rule' | 'message' | 'isFault'>[]> {
  const document = await documents.consider(from, written)
  if (document === undefined || document.rules.length > mostCompared) return []
  // its modules are as many as those of the rest of the admin API, and most gateways are never changed by it
  const { oddities } = await import('../../rehearsal/bounds/bound.ts')
  // an algorithm or a dimension of the application's own is not known here
  const found = await oddities(document).catch(() => [])
  return found.slice(0, mostFindings).map(({ rule, message, isFault }) => ({ rule, message, isFault }))
}

function isShallow(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null) return true
  return depth < deepest && Object.values(value).every(one => isShallow(one, depth + 1))
}
