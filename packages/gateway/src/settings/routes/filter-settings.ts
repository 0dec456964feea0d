import { z } from 'diana-limiter/schema'
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
/** Makes the JSON Schema by which editors complete a filter. */
function forEditors(): z.JsonSchema {
  const { $schema: _, ...shape } = z.toJSONSchema(z.union([use, ...ofDiana, ofTheUser]), { io: 'input' })
  return shape
}

/** A filter as the config names it; the options of a built-in one are read by its own schema. */
export const filterSchema: z.Schema<FilterSettings> = z
  .unknown()
  .meta(forEditors)
  .transform((given, context): FilterSettings => {
    const words = typeof given === 'string' ? { use: given } : given
    const name = nameIn(words)
    const options = typeof name === 'string' && Object.hasOwn(filterOptions, name) ? filterOptions[name] : undefined
    const schema = options ? z.strictObject({ use, ...options }) : ofTheUser
    const { data, issues } = schema.examine(words)
    if (issues.length > 0) {
      context.addIssues(issues)
      return z.NEVER
    }
    const { use: named, ...rest } = data
    return { use: named, options: rest }
  })

function nameIn(words: unknown): unknown {
  return typeof words === 'object' && words !== null && 'use' in words ? words.use : undefined
}
