import type { z } from 'zod'

/** The functions that option schemas are made of; given to functions, so that zod is loaded only when rules are parsed. */
export interface SchemaKit {
  readonly z: Zod
  /** A duration such as `10s`, read as milliseconds. */
  readonly duration: z.ZodType<number, string>
}

/** The functions of zod that create schemas of plain values; a program that needs others imports zod itself. */
export type Zod = Pick<
  typeof z,
  'array' | 'boolean' | 'enum' | 'int' | 'literal' | 'number' | 'object' | 'record' | 'string' | 'union' | 'unknown'
>

/** The schemas of the options of an algorithm or a source by name, or a function that creates them. */
export type OptionShape = z.ZodRawShape | ((kit: SchemaKit) => z.ZodRawShape)
