import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import express from 'express'
import fastify from 'fastify'
import { findProgram } from '../../scripts/programs.mjs'
import { listen } from '../helpers/filters/listen.ts'
import { freePort, startProgram } from '../helpers/servers/program.ts'

/** A real service that answers 200 with the name of the resource that it served. */
export interface PathService {
  readonly name: string
  readonly port: number
  close(): Promise<unknown>
}

/** What the services serve. Everything below `/admin` is one resource to those that route by prefix. */
export const resources: readonly string[] = ['/hello', '/admin/secret', '/dir/deep/file']

/** Starts one service of each kind. */
export async function startServices(): Promise<PathService[]> {
  const folder = mkdtempSync(join(tmpdir(), 'diana-paths-'))
  for (const resource of resources) {
    mkdirSync(dirname(join(folder, 'files', resource)), { recursive: true })
    writeFileSync(join(folder, 'files', resource), resource)
  }
  const services = [
    ...(await startNginx(folder)),
    await serve('Express router', expressRouter()),
    await serve('express.static', express().use(express.static(join(folder, 'files')))),
    await serve('express.static below /dir', express().use('/dir', express.static(join(folder, 'files/dir')))),
    await startFastify('Fastify', {}),
    await startFastify('Fastify with ; as a delimiter', { useSemicolonDelimiter: true }),
    await serve(
      'node:http by URL',
      nodeListener(target => new URL(target, 'http://a').pathname),
    ),
    await serve(
      'node:http by text',
      nodeListener(target => target.split('?', 1)[0]!),
    ),
    await serve(
      'node:http, decoded',
      nodeListener(target => decodeURIComponent(target.split('?', 1)[0]!)),
    ),
    await serve('node:http without parameters', nodeListener(withoutParameters)),
  ]
  const [first, ...others] = services
  return [{ ...first!, close: () => first!.close().then(() => rmSync(folder, { recursive: true })) }, ...others]
}

/** nginx as a file server, as a router by location, and as a proxy that sends on the path as it reads it. */
export async function startNginx(folder: string): Promise<PathService[]> {
  const [files, locations, proxy] = [await freePort(), await freePort(), await freePort()]
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    kind => `${kind}_temp_path ${join(folder, kind)};`,
  )
  const config = join(folder, 'nginx.conf')
  writeFileSync(
    config,
    `daemon off; master_process off; pid ${join(folder, 'nginx.pid')}; error_log ${join(folder, 'error.log')};
    events { worker_connections 256; }
    http {
      access_log off; default_type text/plain; keepalive_requests 1000000; ${temporary.join(' ')}
      server { listen 127.0.0.1:${files}; root ${join(folder, 'files')}; }
      server {
        listen 127.0.0.1:${locations};
        location = /hello { return 200 /hello; }
        location /admin/ { return 200 /admin/secret; }
        location ^~ /dir/deep/ { return 200 /dir/deep/file; }
        location / { return 404; }
      }
      server { listen 127.0.0.1:${proxy}; location / { proxy_pass http://127.0.0.1:${files}/; } }
    }`,
  )
  const program = await startProgram(findNginx(), ['-p', folder, '-c', config], async () => {
    return (await fetch(`http://127.0.0.1:${proxy}/hello`)).ok
  })
  return [
    { name: 'nginx with files', port: files, close: () => program.stop() },
    { name: 'nginx with locations', port: locations, close: async () => {} },
    { name: 'nginx as a proxy', port: proxy, close: async () => {} },
  ]
}

/** nginx lives in directories that are often on root's PATH only. */
export function findNginx(): string {
  const path = [process.env.PATH, '/usr/local/sbin', '/usr/sbin', '/sbin'].join(delimiter)
  return findProgram('nginx', path) ?? 'nginx'
}

function expressRouter(): RequestListener {
  const app = express()
  app.get('/hello', (_request, response) => void response.end('/hello'))
  app.get('/admin/*rest', (_request, response) => void response.end('/admin/secret'))
  app.use('/dir/deep', (_request, response) => void response.end('/dir/deep/file'))
  // a broken escape is an error, and nothing about it is to be printed
  app.use((_error: unknown, _request: unknown, response: express.Response, _next: unknown) => {
    response.status(400).end()
  })
  return app
}

async function startFastify(name: string, routerOptions: object): Promise<PathService> {
  const app = fastify({ forceCloseConnections: true, routerOptions })
  app.get('/hello', async () => '/hello')
  app.get('/admin/*', async () => '/admin/secret')
  app.get('/dir/:name/file', async (request, reply) => {
    const { name } = request.params as { readonly name: string }
    return name === 'deep' ? '/dir/deep/file' : reply.code(404).send()
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { name, port: Number(new URL(app.listeningOrigin).port), close: () => app.close() }
}

function nodeListener(pathOf: (target: string) => string): RequestListener {
  return (request, response) => {
    const path = attempt(() => pathOf(request.url ?? '/'))
    const resource = path?.startsWith('/admin/') ? '/admin/secret' : resources.find(one => one === path)
    if (resource === undefined) response.statusCode = 404
    response.end(resource)
  }
}

/** As servlet containers do: parameters are cut off first, then the path is decoded, then dots are followed. */
function withoutParameters(target: string): string {
  const plain = decodeURIComponent(target.split('?', 1)[0]!.replaceAll(/;[^/]*/g, ''))
  return new URL(`http://a/${plain.replace(/^\/+/, '').replaceAll('%', '%25')}`).pathname
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

async function serve(name: string, listener: RequestListener): Promise<PathService> {
  return { name, ...(await listen(createServer(listener))) }
}
