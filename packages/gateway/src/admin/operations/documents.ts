import type { Limiter, Mistake } from 'diana-limiter'
import type { Where } from 'diana-limiter/admin'
import { adminOf, commentLine } from 'diana-limiter/admin'
import { z } from 'diana-limiter/schema'
import { Refusal } from '../../http/refusal.ts'
import { type AdminContext, type Operation, operation } from './operation.ts'
import { comment, count, mistake, moment, ruleDocument, ruleText, text, version, where } from './shapes.ts'

const mistakes = z.object({ mistakes: z.array(mistake) })
const written = z.object({ version })
export const conflicts: Readonly<Record<number, string>> = {
  403: 'the document cannot be written',
  409: 'it was changed since; `current` is how it stands now',
  422: 'it cannot be used; `mistakes` say where and why',
  502: 'its source failed',
}
const passed = z.object({ allowed: count, refused: count }).meta({ title: 'Split' })

export const documentOperations: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/document',
    role: 'operator',
    summary: 'A rule document as it stands at its source.',
    query: z.object({ where: where.default('local') }),
    answer: ruleDocument,
    refusals: { 502: 'its source failed' },
    run: ({ query }, { limiter }) => adminOf(limiter).documents.read(query.where),
  }),
  operation({
    method: 'POST',
    path: '/check',
    summary: 'What is wrong with a document, if it stood there.',
    body: z.strictObject({ where: where.default('local'), text }),
    answer: mistakes,
    run: async ({ body }, { limiter }) => ({
      mistakes: (await adminOf(limiter).documents.check(body.where, body.text)).map(mistakeOf),
    }),
  }),
  operation({
    method: 'POST',
    path: '/preview',
    summary:
      'What a document would have made of the calls of the last five minutes, beside what the present rules make of them.',
    body: z.strictObject({ where: where.default('local'), text }),
    answer: z
      .object({
        from: moment,
        to: moment,
        calls: count,
        sampled: z.boolean(),
        oneOf: count,
        total: z.object({ before: passed, after: passed }),
        rules: z.array(z.object({ id: z.string(), before: passed, after: passed })),
      })
      .meta({ title: 'Preview' }),
    refusals: { 422: 'it cannot be used; `mistakes` say where and why' },
    run: async ({ body }, { limiter, processes }) => {
      assertGood(await adminOf(limiter).documents.check(body.where, body.text))
      const proposed = await adminOf(limiter).documents.consider(body.where, body.text)
      return adminOf(limiter).preview(proposed!, await processes.recentCalls())
    },
  }),
  operation({
    method: 'PUT',
    path: '/document',
    summary: 'Writes a document in the place of the version that was read, and puts it in force.',
    body: z.strictObject({ where: where.default('local'), text, version, comment }),
    answer: written,
    refusals: conflicts,
    run: ({ body, from, identity: { who } }, context) =>
      write(context, { ...body, from, who, change: () => body.text }),
  }),
  operation({
    method: 'PUT',
    path: '/rules/{id}',
    summary: 'Writes one rule into a document, or adds it; the rest stays as it is written.',
    body: z.strictObject({
      where: where.default('local'),
      text: ruleText.describe('the rule in YAML'),
      version,
      comment,
    }),
    answer: written,
    refusals: conflicts,
    run: ({ id, body, from, identity: { who } }, context) => {
      const read = adminOf(context.limiter).documents.checkRule(body.text)
      assertGood(read.mistakes)
      if (read.id !== id) {
        throw new Refusal(422, `The rule names itself "${read.id}": write id: ${id}, or add it under its own name.`, {
          mistakes: [{ line: 1, column: 1, message: `its id must be ${id}` }],
        })
      }
      const { documents } = adminOf(context.limiter)
      return write(context, { ...body, from, who, change: whole => documents.edit(whole, id, body.text) })
    },
  }),
  operation({
    method: 'DELETE',
    path: '/rules/{id}',
    summary: 'Takes one rule out of a document.',
    query: z.object({ where: where.default('local'), version, comment }),
    answer: written,
    refusals: conflicts,
    run: ({ id, query, from, identity: { who } }, context) => {
      const { documents } = adminOf(context.limiter)
      return write(context, { ...query, from, who, change: whole => documents.edit(whole, id, undefined) })
    },
  }),
]

export interface Write {
  readonly where: Where
  /** The version that was read. */
  readonly version: string
  /** The address that the change came from. */
  readonly from: string
  readonly who: string
  readonly comment?: string | undefined
  readonly change: (text: string) => string | Promise<string>
}

/** Writes a document in the place of the version that was read, unless it was changed since or the text cannot be used. */
export async function write(
  { limiter, versions }: AdminContext,
  { where: place, version: base, from, who, comment: why = '', change }: Write,
): Promise<{ version: string }> {
  const { documents } = adminOf(limiter)
  const stored = await documents.read(place)
  if (!stored.writable) throw new Refusal(403, stored.reason ?? 'It cannot be written.')
  if (stored.version !== base) throw conflict(stored)
  const changed = await change(stored.text)
  assertGood(await documents.check(place, changed))
  try {
    const version = await documents.write(place, changed, base)
    if (changed !== stored.text) {
      const { rules } = await documents.change(stored.text, changed)
      versions.add(place, stored.text, Date.now(), { from, who, comment: commentLine(why) || undefined, rules })
    }
    return { version }
  } catch (error) {
    if ((error as { code?: unknown }).code === 'CONFLICT') throw conflict(await readAgain(limiter, place))
    throw error
  }
}

async function readAgain(limiter: Limiter, place: Where): Promise<{ text: string; version: string }> {
  const { text, version } = await adminOf(limiter).documents.read(place)
  return { text, version }
}

function conflict({ text, version }: { readonly text: string; readonly version: string }): Refusal {
  return new Refusal(409, 'The document was changed since it was read; make the change again on how it stands now.', {
    current: { text, version },
  })
}

function assertGood(found: readonly Mistake[]): void {
  if (found.length === 0) return
  throw new Refusal(422, found[0]!.message, { mistakes: found.map(mistakeOf) })
}

/** Returns a mistake as the API answers it. */
export function mistakeOf({ line, column, rule, message }: Mistake): object {
  return { line, column, ...(rule === undefined ? {} : { rule }), message }
}
