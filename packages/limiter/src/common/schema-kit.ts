import * as z from '../shapes/index.ts'
import { duration } from './duration-schema.ts'
import type { SchemaKit } from './option-shape.ts'

/** The kit that option schemas are made of. It names each function, so that bundlers leave the others out. */
export const schemaKit: SchemaKit = {
  z: {
    array: z.array,
    boolean: z.boolean,
    enum: z.enum,
    int: z.int,
    literal: z.literal,
    number: z.number,
    object: z.object,
    record: z.record,
    string: z.string,
    union: z.union,
    unknown: z.unknown,
  },
  duration,
}
