import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { join, normalize } from 'node:path'

/** A service of files, with ranges; a folder is served by the page `index.html` in it. */
export function fileService(folder: string): RequestListener {
  return (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url ?? '/', 'http://a').pathname))
    const asked = join(folder, path)
    const file = existsSync(asked) && statSync(asked).isDirectory() ? join(asked, 'index.html') : asked
    if (!existsSync(file)) {
      response.writeHead(404).end()
      return
    }
    const { size } = statSync(file)
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '')
    const from = Number(range?.[1] ?? 0)
    const to = Math.min(Number(range?.[2] || size - 1), size - 1)
    const type = file.endsWith('.html')
      ? 'text/html'
      : file.endsWith('.json')
        ? 'application/json'
        : 'application/octet-stream'
    response.writeHead(range ? 206 : 200, {
      'accept-ranges': 'bytes',
      'content-length': to - from + 1,
      'content-type': type,
      ...(range ? { 'content-range': `bytes ${from}-${to}/${size}` } : {}),
    })
    if (request.method === 'HEAD' || size === 0) response.end()
    else if (size < 65_536) response.end(readFileSync(file).subarray(from, to + 1))
    else createReadStream(file, { start: from, end: to }).pipe(response)
  }
}
