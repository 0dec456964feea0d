import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, extname, join } from 'node:path'
import { gzipSync } from 'node:zlib'

/** A file of the web page, ready to send. */
export interface PageFile {
  readonly type: string
  readonly body: Buffer
  /** The file compressed; undefined if that saves nothing. */
  readonly gzip: () => Buffer | undefined
  /** Its name changes with its content. */
  readonly isForever: boolean
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.webp': 'image/webp',
  '.woff2': 'font/woff2',
}

/** Returns the built page by path, read once; empty where it was not built. */
export function readPage(folder: string | undefined = builtPage()): ReadonlyMap<string, PageFile> {
  const files = new Map<string, PageFile>()
  if (folder === undefined) return files
  for (const name of filesIn(folder)) {
    const type = types[extname(name)]
    if (type === undefined) continue
    const isForever = /-[\w-]{8}\.\w+$/.test(name)
    const body = readFileSync(join(folder, name))
    // compressed when it is first asked for: most processes never serve the page
    const gzip = lazily(() => compress(body))
    files.set(`/${name}`, { type, body, isForever, gzip })
  }
  const index = files.get('/index.html')
  if (index) files.set('/', index)
  return files
}

function lazily<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

function compress(body: Buffer): Buffer | undefined {
  const gzip = gzipSync(body)
  return gzip.length < body.length * 0.9 ? gzip : undefined
}

function filesIn(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
    return entries
      .filter(entry => entry.isFile())
      .map(entry =>
        join(entry.parentPath, entry.name)
          .slice(folder.length + 1)
          .replaceAll('\\', '/'),
      )
  } catch {
    return []
  }
}

/** Finds where the page of the package diana-dashboard is built. */
function builtPage(): string | undefined {
  try {
    return join(dirname(createRequire(import.meta.url).resolve('diana-dashboard/package.json')), 'dist')
  } catch {
    return undefined
  }
}
