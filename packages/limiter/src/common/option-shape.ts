import type * as z from '../shapes/index.ts'

/** The functions that option schemas are made of; given to functions, so that schemas are made only when rules are parsed. */
export interface SchemaKit {
  readonly z: Shapes
  /** A duration such as `10s`, read as milliseconds. */
  readonly duration: z.Schema<number, string>
}

/** The functions that make schemas of plain values. */
export type Shapes = Pick<
  typeof z,
  'array' | 'boolean' | 'enum' | 'int' | 'literal' | 'number' | 'object' | 'record' | 'string' | 'union' | 'unknown'
>

/** The schemas of the options of an algorithm or a source by name, or a function that creates them. */
export type OptionShape = z.Shape | ((kit: SchemaKit) => z.Shape)
