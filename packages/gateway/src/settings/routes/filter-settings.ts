import { z } from 'zod'
import { filterOptions } from './filter-options.ts'

/** A filter of the chain: a built-in name or a module, and its options. */
export interface FilterSettings {
  readonly use: string
  readonly options: Readonly<Record<string, unknown>>
}

const use = z.string().min(1).max(1024).describe('A filter of the gateway, a module seen from this file, or a package.')
const ofTheUser = z.looseObject({ use })
const ofDiana = Object.entries(filterOptions).map(([name, options]) =>
  z.strictObject({ use: z.literal(name), ...options }),
)
const forEditors = z.toJSONSchema(z.union([use, ...ofDiana, ofTheUser]), { io: 'input', target: 'draft-2020-12' })
const { $schema: _, ...shape } = forEditors

/** A filter as the config names it; the options of a built-in one are read by its own schema. */
export const filterSchema: z.ZodType<FilterSettings> = z
  .unknown()
  .meta(shape)
  .transform((given, context): FilterSettings => {
    const words = typeof given === 'string' ? { use: given } : given
    const name = nameIn(words)
    const options = typeof name === 'string' && Object.hasOwn(filterOptions, name) ? filterOptions[name] : undefined
    const schema = options ? z.strictObject({ use, ...options }) : ofTheUser
    const read = schema.safeParse(words, { reportInput: true, error: knownWords })
    if (read.success) {
      const { use: name, ...options } = read.data
      return { use: name, options }
    }
    for (const issue of read.error.issues) context.issues.push({ ...issue, continue: false } as z.core.$ZodRawIssue)
    return z.NEVER
  })

function nameIn(words: unknown): unknown {
  return typeof words === 'object' && words !== null && 'use' in words ? words.use : undefined
}

/** Leaves what to say to the reader of the issues, which needs the known words to find a mistyped one. */
function knownWords(issue: z.core.$ZodRawIssue): string {
  const definition: object | undefined = issue.inst?._zod.def
  const hasShape = definition !== undefined && 'shape' in definition
  return issue.code === 'unrecognized_keys' && hasShape ? Object.keys(definition.shape as object).join(' ') : ''
}
