import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Limiter } from 'diana-limiter'
import { expect, it } from 'vitest'

const folder = new URL('docs/fetch/', import.meta.url)
const page = readFileSync(fileURLToPath(new URL('../docs/filters.md', import.meta.url)), 'utf8')

interface Recipe {
  readonly limit?: { readonly limiter: Promise<Limiter>; close(): Promise<void> }
  readonly [name: string]: unknown
}

type Handler = (...args: unknown[]) => Promise<Response | undefined> | Response | undefined

/** How each framework calls what its recipe exports, for a caller with an address. */
const calls: Readonly<Record<string, (recipe: Recipe, request: Request, ip: string) => ReturnType<Handler>>> = {
  'server.mjs': (recipe, request, ip) => {
    const { fetch } = recipe.default as { fetch: Handler }
    // Bun passes its server, Deno an object with the address
    const info = ip.endsWith('1') ? { requestIP: () => ({ address: ip }) } : { remoteAddr: { hostname: ip } }
    return fetch(request, info)
  },
  'worker.mjs': (recipe, request) => (recipe.default as { fetch: Handler }).fetch(request),
  'next-proxy.mjs': (recipe, request) => (recipe.proxy as Handler)(request),
  'next-route.mjs': (recipe, request) => (recipe.GET as Handler)(request, { params: Promise.resolve({ id: '7' }) }),
  'sveltekit.mjs': (recipe, request, ip) => {
    const event = { request, getClientAddress: () => ip }
    return (recipe.handle as Handler)({ event, resolve: async () => new Response('served') })
  },
}

it('every recipe for fetch is run by this test', () => {
  expect(readdirSync(fileURLToPath(folder)).sort()).toEqual(Object.keys(calls).sort())
})

it.each(Object.entries(calls))(
  '%s is shown in docs/filters.md, and refuses the third call of a caller',
  async (name, call) => {
    expect(page).toContain(readFileSync(fileURLToPath(new URL(name, folder)), 'utf8'))
    const recipe = (await import(/* @vite-ignore */ new URL(name, folder).href)) as Recipe
    const status = async (ip: string) => {
      const headers: Record<string, string> = name.startsWith('next')
        ? { 'x-forwarded-for': ip }
        : name === 'worker.mjs'
          ? { 'cf-connecting-ip': ip }
          : {}
      return (await call(recipe, new Request('http://example.com/', { headers }), ip))?.status ?? 200
    }
    const first = [await status('203.0.113.1'), await status('203.0.113.1'), await status('203.0.113.1')]
    expect([...first, await status('203.0.113.2')]).toEqual([200, 200, 503, 200])
    await recipe.limit?.close()
  },
)
