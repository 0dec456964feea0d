import type { FastifyInstance, RouteOptions } from 'fastify'

/** Hooks that Fastify runs for the application, not for each request. */
const ofTheApplication: readonly string[] = ['onRoute', 'onRegister', 'onReady', 'onListen', 'preClose', 'onClose']

/** Reports that a plugin adds hooks, or routes with handlers, that are not among `own`: only Fastify can serve those. */
export function watchHooks(app: FastifyInstance, own: readonly unknown[], onAdded: () => void): void {
  const addHook = app.addHook as (...args: unknown[]) => FastifyInstance
  // plugins with a scope of their own inherit this method
  app.addHook = function (this: FastifyInstance, ...args: unknown[]) {
    const [name, hook] = args
    if (!ofTheApplication.includes(String(name)) && !own.includes(hook)) onAdded()
    return addHook.apply(this, args)
  } as typeof app.addHook
  addHook.call(app, 'onRoute', ({ handler }: RouteOptions) => {
    if (!own.includes(handler)) onAdded()
  })
}
