import type { z } from 'diana-limiter/schema'
import type { FastifyPluginAsync, FastifyPluginCallback, onRequestAsyncHookHandler } from 'fastify'

/** A Fastify plugin whose hooks are the gateway's own. */
export type FilterPlugin = FastifyPluginCallback | FastifyPluginAsync

/** Things that a filter may need besides its options. */
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
  /** Makes the plugin. `options` are as their schema read them; throws a DianaError if they cannot be used. */
  create(options: Readonly<Record<string, unknown>>, surroundings: FilterSurroundings): FilterPlugin
}

/** Returns a plugin of one hook, asked of every call in the order in which filters are named. */
export function onRequest(name: string, hook: onRequestAsyncHookHandler): FastifyPluginCallback {
  const plugin: FastifyPluginCallback = (app, _options, done) => {
    app.addHook('onRequest', hook)
    done()
  }
  // the hook is the gateway's own, not that of a scope apart: this is what the fastify-plugin package does
  return Object.assign(plugin, {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: name,
  })
}
