import { describe, expect, it } from 'vitest'
import * as zod from 'zod'
import { algorithms } from '../algorithms/index.ts'
import { dimensions } from '../dimensions/index.ts'
import { explain } from '../rules/explain.ts'
import { parseOptions } from '../rules/parse.ts'
import { sources } from '../sources/index.ts'
import * as z from './index.ts'

/** The same schemas in this library and in zod, which defines what they mean. */
const pairs = (make: (lib: typeof zod) => zod.ZodType): [z.Schema, zod.ZodType] => [
  make(z as unknown as typeof zod) as unknown as z.Schema,
  make(zod),
]

const values: readonly unknown[] = [
  ...[undefined, null, true, false, 0, 1, 2, 5, -1, 1.5, 2 ** 60, Number.NaN, Number.POSITIVE_INFINITY],
  ...['', 'a', 'ab', 'abcdef', '5', 'x'.repeat(40), [], ['a'], [1, 2], ['a', 5], ['a', 'b', 'c', 'd'], {}],
  ...[
    { a: 'ab' },
    { a: 5 },
    { a: 'ab', b: 3 },
    { a: 'ab', b: 'x', c: 1 },
    { b: null },
    { a: undefined },
    { a: 'toolong' },
  ],
  ...[JSON.parse('{"__proto__":{"a":1}}'), new Date(0), Object.create({ a: 'ab' }), () => 1],
]

const cases: readonly [string, (lib: typeof zod) => zod.ZodType][] = [
  ['text with bounds', lib => lib.string().min(1).max(5).regex(/^a/)],
  [
    'a check that aborts',
    lib =>
      lib
        .string()
        .max(2, { abort: true })
        .refine(text => text === 'ab'),
  ],
  ['a number', lib => lib.number().min(0).max(2)],
  ['a whole number', lib => lib.int().min(0).max(3)],
  ['more than a number', lib => lib.number().gt(1)],
  ['true or false', lib => lib.boolean().optional()],
  ['a choice', lib => lib.enum(['a', 'ab'])],
  ['a literal', lib => lib.literal([5, 1])],
  ['a list', lib => lib.array(lib.string().min(2)).min(1).max(3)],
  ['a strict object', lib => lib.strictObject({ a: lib.string().max(3), b: lib.int().optional() })],
  ['an object', lib => lib.object({ a: lib.string().optional(), b: lib.unknown() })],
  ['a loose object', lib => lib.looseObject({ a: lib.string() })],
  [
    'defaults',
    lib =>
      lib.object({ a: lib.string().default('x'), b: lib.int().prefault(2), c: lib.boolean().nullable().default(null) }),
  ],
  ['a default of an optional', lib => lib.object({ a: lib.string().default('x').optional() })],
  ['exact optional fields', lib => lib.object({ a: lib.string().exactOptional() })],
  ['a record', lib => lib.record(lib.string().max(1), lib.union([lib.string(), lib.number()]))],
  ['a union', lib => lib.union([lib.string().min(2), lib.array(lib.string()), lib.int()])],
  ['a union of objects', lib => lib.union([lib.strictObject({ a: lib.string() }), lib.strictObject({ b: lib.int() })])],
  [
    'a transformation',
    lib =>
      lib
        .string()
        .min(1)
        .transform(text => text.length)
        .refine(length => length < 3),
  ],
  ['a repaired value', lib => lib.object({ a: lib.string().max(3).catch('x') })],
  ['a partial object', lib => lib.object({ a: lib.string(), b: lib.int().default(1) }).partial()],
  ['a longer object', lib => lib.object({ a: lib.string() }).extend({ b: lib.int() })],
  [
    'a check of the whole',
    lib =>
      lib.object({ a: lib.string().max(3) }).superRefine(({ a }, context) => {
        if (a !== 'ab') context.addIssue({ code: 'custom', path: ['a'], message: 'must be ab' })
      }),
  ],
]

describe('schemas', () => {
  it.each(cases)('%s reads the same values as zod, and finds the same faults', (_, make) => {
    const [own, other] = pairs(make)
    for (const value of values) {
      const mine = own.examine(value)
      const theirs = other.safeParse(value)
      const [mistake] = mine.issues
      const [expected] = theirs.error?.issues ?? []
      expect([mistake?.code, mistake?.path], String(value)).toEqual([expected?.code, expected?.path])
      if (theirs.success) expect(mine.data).toStrictEqual(theirs.data)
    }
  })

  it.each(cases)('%s has the same JSON Schema as in zod', (_, make) => {
    const [own, other] = pairs(make)
    for (const io of ['input', 'output'] as const) {
      const mine = z.toJSONSchema(own, { io })
      expect(normal(mine)).toEqual(normal(zod.toJSONSchema(other, { io, unrepresentable: 'any' })))
    }
  })

  it('a schema stays as it is when another one is made of it', () => {
    const text = z.string()
    const short = text.max(1).describe('short')
    expect([text.safeParse('ab').success, short.safeParse('ab').success]).toEqual([true, false])
    expect(text.toJson('input')).toEqual({ type: 'string' })
  })

  it('an error says what is wrong and what to write', () => {
    const schema = z.strictObject({ name: z.string(), size: z.int().min(1), kind: z.enum(['small', 'large']) })
    const value = { name: 5, size: 0, kind: 'smal', color: 1 }
    const { problems } = explain(schema, value)
    expect(problems.map(({ path, what }) => `${path.join('.')} ${what}`)).toEqual([
      'name must be text, not 5: write "5" in quotes',
      'size must be at least 1, not 0',
      'kind must be small or large, not "smal": did you mean small?',
      'color is not a known option: write name, size or kind',
    ])
    expect(() => schema.parse(value)).toThrow('size must be at least 1')
  })

  it('a schema follows Standard Schema', () => {
    const standard = z.object({ a: z.int().default(1) })['~standard']
    expect(standard.validate({})).toEqual({ value: { a: 1 } })
    expect(standard.validate({ a: 'x' })).toMatchObject({ issues: [{ path: ['a'] }] })
  })

  it('a field may have a schema of another library', () => {
    const schema = z.strictObject({
      own: z.string(),
      other: zod.strictObject({ n: zod.number() }),
      maybe: zod.string().optional(),
    })
    expect(schema.parse({ own: 'a', other: { n: 1 } })).toEqual({ own: 'a', other: { n: 1 } })
    const { problems } = explain(schema, { own: 'a', other: { n: 'x' } })
    expect(problems).toMatchObject([{ path: ['other', 'n'] }])
    expect(schema.toJson('input')).toMatchObject({
      properties: { other: { properties: { n: { type: 'number' } } } },
      required: ['own', 'other'],
    })
  })

  it('a schema that answers with a promise is an error', () => {
    const later = { '~standard': { version: 1, vendor: 'later', validate: async () => ({ value: 1 }) } } as const
    expect(() => z.object({ a: later })['~standard'].validate({ a: 1 })).toThrow(/at once/)
  })

  it('a section of the rule file may have a schema of another library', () => {
    const shop = { name: 'shop', schema: zod.object({ open: zod.boolean().default(true) }) }
    const vocabulary = { algorithms, dimensions, sources, sections: [shop] }
    const rules = [{ id: 'all', limit: '1/s' }]
    expect(parseOptions({ rules, shop: {} } as never, vocabulary).document?.sections).toEqual({ shop: { open: true } })
    const { mistakes } = parseOptions({ rules, shop: { open: 5 } } as never, vocabulary)
    expect(mistakes?.[0]?.message).toMatch(/shop\.open/)
  })
})

/** Bounds that any whole number has say nothing, and zod writes a nullable type in another way. */
function normal(schema: object): unknown {
  return JSON.parse(JSON.stringify(schema), (_, value) => {
    if (Array.isArray(value?.anyOf) && value.anyOf.every((one: object) => Object.keys(one).join() === 'type')) {
      const { anyOf, ...rest } = value
      return { ...rest, type: anyOf.map(({ type }: { type: string }) => type) }
    }
    return value
  })
}
