import type { z } from 'zod'
import type { OptionShape } from '../../common/option-shape.ts'
import { schemaKit } from '../../common/schema-kit.ts'

const created = new WeakMap<object, z.ZodRawShape>()

/** Returns the schemas of an algorithm's or a source's own options; a function that creates them is called once. */
export function shapeOf(options: OptionShape): z.ZodRawShape {
  if (typeof options !== 'function') return options
  const shape = created.get(options) ?? options(schemaKit)
  created.set(options, shape)
  return shape
}
