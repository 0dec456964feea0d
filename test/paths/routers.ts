import 'reflect-metadata'
import { createServer, type RequestListener } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { Controller, Get, Module, VersioningType } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import express5, { type Express, type Request as ExpressRequest, type NextFunction, type Router } from 'express'
import fastify, { type FastifyServerOptions } from 'fastify'
import { Hono } from 'hono'
import { LinearRouter } from 'hono/router/linear-router'
import { PatternRouter } from 'hono/router/pattern-router'
import { TrieRouter } from 'hono/router/trie-router'
import Koa, { type Middleware } from 'koa'
import { match } from 'path-to-regexp'
import { diana as expressFilter } from '../../packages/limiter/src/filters/express.ts'
import { diana as fastifyFilter } from '../../packages/limiter/src/filters/fastify.ts'
import { diana as fetchFilter } from '../../packages/limiter/src/filters/fetch.ts'
import { diana as honoFilter } from '../../packages/limiter/src/filters/hono.ts'
import { guard, diana as httpFilter } from '../../packages/limiter/src/filters/http.ts'
import { diana as koaFilter } from '../../packages/limiter/src/filters/koa.ts'
import { DianaModule } from '../../packages/limiter/src/filters/nest.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'
import type { ServerUnderTest } from '../../packages/limiter/src/testing/filters/suite.ts'
import { listen } from '../helpers/filters/listen.ts'

// it has the types of Express 5 as far as these applications need them
const express4 = createRequire(import.meta.url)('express4') as typeof express5

/** What every application serves below its prefix; each handler answers with the name of its resource. */
export const routedResources: readonly string[] = [
  '/hello',
  '/admin/secret',
  '/dir/deep/file',
  '/auth/login',
  '/big sale',
  '/café/menu',
  '/key/7',
]

/** A filter in front of one router with one set of options. */
export interface RoutedApplication {
  /** What stands before each resource in the paths of the router; none by default. */
  readonly prefix?: string | undefined
  /** What callers may write before a path besides, which a middleware takes away. */
  readonly rewritten?: string | undefined
  start(limiter: Limiter): Promise<ServerUnderTest>
}

type ExpressFactory = typeof express5
type AddRoutes = (add: (path: string, resource: string) => void, wildcard: string) => void

/** The routes of a router that takes parameters as `:name`; `wildcard` is its word for everything below. */
const addRoutes: AddRoutes = (add, wildcard) => {
  add('/hello', '/hello')
  add(`/admin/${wildcard}`, '/admin/secret')
  add('/dir/:name/file', '/dir/deep/file')
  add('/big sale', '/big sale')
  add('/big%20sale', '/big sale')
  add('/café/menu', '/café/menu')
  add('/caf%C3%A9/menu', '/café/menu')
  add('/key/:id', '/key/7')
}

function addToExpress(router: Router, wildcard: string): void {
  addRoutes((path, resource) => {
    router.get(path, (request, response, next) => {
      if (resource === '/dir/deep/file' && request.params.name !== 'deep') next()
      else response.end(resource)
    })
  }, wildcard)
}

interface ExpressChoices {
  readonly app?: readonly string[]
  readonly router?: { readonly caseSensitive?: boolean; readonly strict?: boolean }
  readonly nested?: 'router' | 'application'
}

/** Routes of the application itself, and `/auth/login` in a router or an application of its own. */
function expressApp(
  express: ExpressFactory,
  { app: settings = [], router = {}, nested = 'router' }: ExpressChoices,
  first: (app: Express) => void,
): Express {
  const app = express()
  for (const setting of settings) app.enable(setting)
  first(app)
  addToExpress(app as unknown as Router, express === express4 ? '*' : '*rest')
  const inner = nested === 'router' ? express.Router(router) : express()
  inner.get('/login', (_request: ExpressRequest, response) => void response.end('/auth/login'))
  app.use('/auth', inner)
  app.use((_error: unknown, _request: ExpressRequest, response: express5.Response, _next: NextFunction) => {
    response.status(400).end()
  })
  return app
}

const onExpress = (express: ExpressFactory, choices: ExpressChoices = {}): RoutedApplication => ({
  start: limiter => listen(createServer(expressApp(express, choices, app => app.use(expressFilter(limiter))))),
})

/** A middleware that takes `/v1` away, as those that give an API several versions or languages do. */
const withoutVersion = (url: string): string => url.replace(/^(\w+:\/\/[^/]*)?\/v1(?=[/?]|$)/, '$1')

const expressRewriting = (express: ExpressFactory): RoutedApplication => ({
  rewritten: '/v1',
  start: limiter => {
    const rewrite = (request: ExpressRequest, _response: unknown, next: NextFunction): void => {
      request.url = withoutVersion(request.url) || '/'
      next()
    }
    return listen(createServer(expressApp(express, {}, app => app.use(rewrite).use(expressFilter(limiter)))))
  },
})

/** The filter inside a router that is mounted below a prefix, with a middleware that rewrites inside it. */
const expressInside = (express: ExpressFactory, rewrites: boolean): RoutedApplication => ({
  prefix: '/api',
  ...(rewrites && { rewritten: '/v1' }),
  start: limiter => {
    const inside = express.Router()
    if (rewrites) {
      inside.use((request, _response, next) => {
        request.url = withoutVersion(request.url) || '/'
        next()
      })
    }
    inside.use(expressFilter(limiter))
    inside.use(expressApp(express, {}, () => {}))
    return listen(createServer(express().use('/api', inside)))
  },
})

async function startFastify(limiter: Limiter, options: FastifyServerOptions, prefix = ''): Promise<ServerUnderTest> {
  const app = fastify({ forceCloseConnections: true, ...options })
  app.register(fastifyFilter(limiter))
  app.register(
    async scope => {
      const added = new Set<string>()
      addRoutes((path, resource) => {
        // to Fastify both spellings are one route
        if (added.has(decodeURI(path))) return
        added.add(decodeURI(path))
        scope.get(decodeURI(path), async (request, reply) => {
          const { name } = request.params as { readonly name?: string }
          return resource === '/dir/deep/file' && name !== 'deep' ? reply.code(404).send() : resource
        })
      }, '*')
      scope.register(async inner => void inner.get('/login', async () => '/auth/login'), { prefix: '/auth' })
    },
    prefix === '' ? {} : { prefix },
  )
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
}

const onFastify = (routerOptions: object, prefix = ''): RoutedApplication => ({
  prefix,
  start: limiter => startFastify(limiter, { routerOptions }, prefix),
})

/** A router as `@koa/router` is: path-to-regexp on `context.path`. */
function koaRouter(sensitive: boolean, base = ''): Middleware {
  const routes: { readonly fits: ReturnType<typeof match>; readonly resource: string }[] = []
  const add = (path: string, resource: string): void => {
    routes.push({ fits: match(base + path, { sensitive, trailing: true, decode: false }), resource })
  }
  addRoutes(add, '*rest')
  add('/auth/login', '/auth/login')
  return (context, next) => {
    for (const { fits, resource } of routes) {
      const found = fits(context.path)
      if (found === false) continue
      if (resource === '/dir/deep/file' && found.params.name !== 'deep') continue
      context.body = resource
      return undefined
    }
    return next()
  }
}

/** As koa-mount does it: what is mounted sees the rest of the path. */
function koaMount(prefix: string, mounted: Middleware): Middleware {
  return async (context, next) => {
    const before = context.path
    const rest = before === prefix ? '/' : before.startsWith(`${prefix}/`) ? before.slice(prefix.length) : undefined
    if (rest === undefined) return await next()
    ;(context as { mountPath?: string }).mountPath = prefix
    context.path = rest
    await mounted(context, async () => {
      context.path = before
      await next()
      context.path = rest
    })
    context.path = before
  }
}

function startKoa(...list: Middleware[]): Promise<ServerUnderTest> {
  const app = new Koa()
  app.silent = true
  for (const one of list) app.use(one)
  return listen(createServer(app.callback()))
}

const composed =
  (...list: Middleware[]): Middleware =>
  (context, next) => {
    const at = (place: number): Promise<unknown> =>
      Promise.resolve(place === list.length ? next() : list[place]!(context, () => at(place + 1)))
    return at(0)
  }

function addToHono(app: Hono): Hono {
  const added = new Set<string>()
  addRoutes((path, resource) => {
    if (added.has(decodeURI(path))) return
    added.add(decodeURI(path))
    app.get(decodeURI(path), context => {
      const name = (context.req.param() as { readonly name?: string }).name
      return resource === '/dir/deep/file' && name !== 'deep' ? context.notFound() : context.text(resource)
    })
  }, '*')
  return app.route(
    '/auth',
    new Hono().get('/login', context => context.text('/auth/login')),
  )
}

function startHono(app: Hono): Promise<ServerUnderTest> {
  // a target with a user's name cannot become a request of what is mounted
  app.onError((_error, context) => context.body(null, 400))
  return listen(createServer(getRequestListener(app.fetch)))
}

type HonoOptions = NonNullable<ConstructorParameters<typeof Hono>[0]>

/** `optionsOf` is called for each application: a router takes no routes after its first request. */
const onHono = (optionsOf: () => HonoOptions = () => ({}), prefix = ''): RoutedApplication => ({
  prefix,
  start: limiter => {
    const app = new Hono(optionsOf())
    app.use(honoFilter(limiter))
    addToHono(prefix === '' ? app : (app.basePath(prefix) as Hono))
    return startHono(app)
  },
})

interface NestChoices {
  readonly prefix?: string
  readonly globalPrefix?: string
  readonly version?: string
  readonly settings?: readonly string[]
}

const onNest = ({ prefix = '', globalPrefix, version, settings = [] }: NestChoices = {}): RoutedApplication => ({
  prefix,
  start: async limiter => {
    class Calls {}
    const decorateRoute = (path: string, resource: string): void => {
      const name = `route ${path}`
      Object.defineProperty(Calls.prototype, name, { value: () => resource, configurable: true, writable: true })
      Get(path)(Calls.prototype, name, Object.getOwnPropertyDescriptor(Calls.prototype, name)!)
    }
    addRoutes((path, resource) => {
      if (resource !== '/dir/deep/file') decorateRoute(path, resource)
    }, '*rest')
    decorateRoute('/dir/deep/file', '/dir/deep/file')
    decorateRoute('/auth/login', '/auth/login')
    Controller(version === undefined ? {} : { version })(Calls)
    class Application {}
    Module({ imports: [DianaModule.forRoot(limiter)], controllers: [Calls] })(Application)
    const app = await NestFactory.create(Application, { logger: false })
    for (const setting of settings) (app.getHttpAdapter().getInstance() as Express).enable(setting)
    if (globalPrefix !== undefined) app.setGlobalPrefix(globalPrefix)
    if (version !== undefined) app.enableVersioning({ type: VersioningType.URI })
    await app.init()
    return listen(app.getHttpServer())
  },
})

/** A handler of fetch that routes by the path of the URL, decoded or not. */
function fetchRoutes(read: (url: URL) => string): (request: Request) => Response {
  return request => {
    const path = attempt(() => read(new URL(request.url)))
    const resource = path?.startsWith('/admin/')
      ? '/admin/secret'
      : routedResources.find(one => one === path || encodeURI(one) === path)
    return new Response(resource, { status: resource === undefined ? 404 : 200 })
  }
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

const onFetch = (read: (url: URL) => string, rewrites = false): RoutedApplication => ({
  ...(rewrites && { rewritten: '/v1' }),
  start: limiter => {
    const handle = fetchFilter(limiter).wrap(fetchRoutes(read) as (request: Request, info: object) => Response)
    const rewriting = (request: Request, info: object): Response | Promise<Response> => {
      const url = new URL(request.url)
      url.pathname = withoutVersion(url.pathname)
      return handle(new Request(url, request), info)
    }
    return listen(createServer(getRequestListener((rewrites ? rewriting : handle) as never)))
  },
})

const onNode = (router: RequestListener, guarded: boolean): RoutedApplication => ({
  start: limiter =>
    listen(guarded ? guard(createServer(router), limiter) : createServer(httpFilter(limiter, router as never))),
})

function expressVersions(name: string, make: (express: ExpressFactory) => RoutedApplication) {
  return { [`Express 5, ${name}`]: make(express5), [`Express 4, ${name}`]: make(express4) }
}

const sensitive = 'case sensitive routing'

/** Every router that Diana has a filter for, by the options that change how it reads a path. */
export const routedApplications: Readonly<Record<string, RoutedApplication>> = {
  ...expressVersions('as it is', express => onExpress(express)),
  ...expressVersions('case sensitive, with a router that is not', express => onExpress(express, { app: [sensitive] })),
  ...expressVersions('case sensitive with its routers', express =>
    onExpress(express, { app: [sensitive], router: { caseSensitive: true } }),
  ),
  ...expressVersions('with a case sensitive router', express =>
    onExpress(express, { router: { caseSensitive: true } }),
  ),
  ...expressVersions('case sensitive, with an application that is not', express =>
    onExpress(express, { app: [sensitive], nested: 'application' }),
  ),
  ...expressVersions('strict', express => onExpress(express, { app: ['strict routing'], router: { strict: true } })),
  ...expressVersions('behind a middleware that rewrites', expressRewriting),
  ...expressVersions('inside a router', express => expressInside(express, false)),
  ...expressVersions('inside a router that rewrites', express => expressInside(express, true)),
  'Fastify as it is': onFastify({}),
  'Fastify, case insensitive': onFastify({ caseSensitive: false }),
  'Fastify without slashes that are one too many': onFastify({
    ignoreTrailingSlash: true,
    ignoreDuplicateSlashes: true,
  }),
  'Fastify with ; as a delimiter': onFastify({ useSemicolonDelimiter: true }),
  'Fastify with all of these': onFastify({
    caseSensitive: false,
    ignoreTrailingSlash: true,
    ignoreDuplicateSlashes: true,
    useSemicolonDelimiter: true,
  }),
  'Fastify below a prefix': onFastify({}, '/api'),
  'Fastify below a prefix, case insensitive': onFastify({ caseSensitive: false }, '/api'),
  'Fastify that rewrites': {
    rewritten: '/v1',
    start: limiter => startFastify(limiter, { rewriteUrl: request => withoutVersion(request.url ?? '/') || '/' }),
  },
  'Koa with a router': { start: limiter => startKoa(koaFilter(limiter), koaRouter(false)) },
  'Koa with a case sensitive router': { start: limiter => startKoa(koaFilter(limiter), koaRouter(true)) },
  'Koa with a mounted router': {
    prefix: '/api',
    start: limiter => startKoa(koaFilter(limiter), koaMount('/api', koaRouter(false))),
  },
  'Koa, inside what is mounted': {
    prefix: '/api',
    start: limiter => startKoa(koaMount('/api', composed(koaFilter(limiter), koaRouter(false)))),
  },
  'Koa behind a middleware that rewrites': {
    rewritten: '/v1',
    start: limiter => {
      const rewrite: Middleware = (context, next) => {
        context.url = withoutVersion(context.url) || '/'
        return next()
      }
      return startKoa(rewrite, koaFilter(limiter), koaRouter(false))
    },
  },
  'Koa behind a middleware that rewrites, inside what is mounted': {
    prefix: '/api',
    rewritten: '/v1',
    start: limiter => {
      const rewrite: Middleware = (context, next) => {
        context.url = withoutVersion(context.url) || '/'
        return next()
      }
      return startKoa(rewrite, koaMount('/api', composed(koaFilter(limiter), koaRouter(false))))
    },
  },
  'Hono as it is': onHono(),
  'Hono, not strict': onHono(() => ({ strict: false })),
  'Hono with its TrieRouter': onHono(() => ({ router: new TrieRouter() })),
  'Hono with its LinearRouter': onHono(() => ({ router: new LinearRouter() })),
  'Hono with its PatternRouter': onHono(() => ({ router: new PatternRouter() })),
  'Hono below a base path': onHono(() => ({}), '/api'),
  'Hono with a path of its own': {
    rewritten: '/v1',
    ...onHono(() => ({ getPath: request => withoutVersion(new URL(request.url).pathname) || '/' })),
  },
  'Hono with another application mounted': {
    prefix: '/api',
    start: limiter => {
      const app = new Hono()
      app.use(honoFilter(limiter))
      app.mount('/api', addToHono(new Hono()).fetch)
      return startHono(app)
    },
  },
  'Hono, inside what is mounted': {
    prefix: '/api',
    start: limiter => {
      const inner = new Hono()
      inner.use(honoFilter(limiter))
      return startHono(new Hono().mount('/api', addToHono(inner).fetch))
    },
  },
  'Nest as it is': onNest(),
  'Nest with a global prefix': onNest({ prefix: '/api', globalPrefix: 'api' }),
  'Nest with versions in the path': onNest({ prefix: '/v2', version: '2' }),
  'Nest with both': onNest({ prefix: '/api/v2', globalPrefix: 'api', version: '2' }),
  'Nest, case sensitive': onNest({ settings: [sensitive] }),
  'fetch by the path of the URL': onFetch(url => url.pathname),
  'fetch by the decoded path of the URL': onFetch(url => decodeURIComponent(url.pathname)),
  'fetch in lower case': onFetch(url => decodeURI(url.pathname).toLowerCase()),
  'fetch behind a function that rewrites': onFetch(url => url.pathname, true),
  'node:http with Express behind it': onNode(
    expressApp(express5, {}, () => {}),
    false,
  ),
  'node:http, guarded, with Express behind it': onNode(
    expressApp(express5, { app: [sensitive] }, () => {}),
    true,
  ),
}
