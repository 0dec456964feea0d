import { spawn } from 'node:child_process'
import type { RequestListener } from 'node:http'

/** Git's own server program, which speaks CGI, behind a Node server. */
export function gitService(folder: string): RequestListener {
  return (request, response) => {
    const { pathname, search } = new URL(request.url ?? '/', 'http://a')
    const { headers, method = 'GET' } = request
    const child = spawn('git', ['http-backend'], {
      env: {
        PATH: process.env.PATH,
        GIT_PROJECT_ROOT: folder,
        GIT_HTTP_EXPORT_ALL: '1',
        REMOTE_USER: 'a',
        REMOTE_ADDR: '127.0.0.1',
        REQUEST_METHOD: method,
        PATH_INFO: pathname,
        QUERY_STRING: search.slice(1),
        CONTENT_TYPE: headers['content-type'] ?? '',
        HTTP_CONTENT_ENCODING: headers['content-encoding'] ?? '',
        HTTP_GIT_PROTOCOL: String(headers['git-protocol'] ?? ''),
        ...(headers['content-length'] === undefined ? {} : { CONTENT_LENGTH: headers['content-length'] }),
      },
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    child.stdin.on('error', () => {})
    request.pipe(child.stdin)
    let head = Buffer.alloc(0)
    const onHead = (piece: Buffer): void => {
      head = Buffer.concat([head, piece])
      const end = head.indexOf('\r\n\r\n')
      if (end < 0) return
      child.stdout.off('data', onHead)
      const lines = head.toString('latin1', 0, end).split('\r\n')
      for (const line of lines) {
        const [name = '', value = ''] = line.split(': ')
        if (name === 'Status') response.statusCode = Number.parseInt(value, 10)
        else response.setHeader(name, value)
      }
      response.write(head.subarray(end + 4))
      child.stdout.pipe(response)
    }
    child.stdout.on('data', onHead)
  }
}
