import type { z } from 'diana-limiter/schema'
import type { FastifyPluginAsync, FastifyPluginCallback } from 'fastify'

/** A Fastify plugin whose hooks are the gateway's own. */
export type FilterPlugin = FastifyPluginCallback | FastifyPluginAsync

/** What a filter may need besides its options. */
export interface FilterSurroundings {
  /** The folder that paths are seen from. */
  readonly folder: string
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** A filter that comes with the gateway; it is used only where the config names it. */
export interface Filter {
  readonly name: string
  /** The words that stand beside `use`. */
  readonly options: z.Shape
  /** `options` are as their schema read them; throws a DianaError where they cannot be used. */
  create(options: Readonly<Record<string, unknown>>, surroundings: FilterSurroundings): FilterPlugin
}
