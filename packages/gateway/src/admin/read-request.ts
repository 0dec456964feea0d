import { Refusal } from '../http/refusal.ts'
import { shellWords } from './shell-words.ts'

/** A request as a person wrote it down. */
export interface WrittenRequest {
  readonly method: string
  /** Path and query, as sent. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
}

interface Draft {
  method: string | undefined
  url: string | undefined
  hasBody: boolean
  bodyInQuery: boolean
  body: string[]
  readonly headers: [name: string, value: string][]
}

const longest = 65_536
const token = /^[!#$%&'*+.^_`|~\w-]{1,256}$/

/** Reads a request in curl's syntax, or as it stands on the wire: `METHOD path` and headers. */
export function readRequest(text: string): WrittenRequest {
  if (text.length > longest) throw new Refusal(400, 'The request is longer than 64 KiB.')
  return /^\s*\$?\s*curl(?:\.exe)?\s/.test(text) ? readCurl(text) : readRaw(text)
}

type Option = (draft: Draft, value: string) => void

const header: Option = ({ headers }, line) => {
  const colon = line.indexOf(':')
  // curl takes a name with ; for a header without a value, and one with nothing behind : for none at all
  const name = (colon < 0 ? line.replace(/;$/, '') : line.slice(0, colon)).trim().toLowerCase()
  const value = colon < 0 ? '' : line.slice(colon + 1).trim()
  if (!token.test(name)) throw new Refusal(400, `"${cut(line)}" is no header: write -H 'name: value'.`)
  if (colon < 0 || value !== '') headers.push([name, value])
}
const named =
  (name: string): Option =>
  ({ headers }, value) => {
    headers.push([name, value])
  }
const data: Option = (draft, value) => {
  draft.hasBody = true
  draft.body.push(value)
}
const skip: Option = () => {}

/** Those that take a value. */
const withValue: Readonly<Record<string, Option>> = {
  '-X': (draft, value) => {
    draft.method = value
  },
  '-H': header,
  '-d': data,
  '--json': (draft, value) => {
    data(draft, value)
    draft.headers.push(['content-type', 'application/json'])
  },
  '-F': data,
  '-T': draft => {
    draft.method ??= 'PUT'
  },
  // without = it names a file of cookies
  '-b': (draft, value) => {
    if (value.includes('=')) draft.headers.push(['cookie', value])
  },
  '-A': named('user-agent'),
  '-e': named('referer'),
  '-u': ({ headers }, value) => {
    headers.push(['authorization', `Basic ${Buffer.from(value).toString('base64')}`])
  },
  '--url': (draft, value) => {
    draft.url ??= value
  },
  ...Object.fromEntries(
    ['-o', '-w', '-x', '-m', '-c', '-E', '-D', '-r', '-y', '-Y', '-z', '-K', '-C', '-t', '-U', '-P', '-Q'].map(one => [
      one,
      skip,
    ]),
  ),
  ...Object.fromEntries(
    [
      'connect-timeout',
      'resolve',
      'retry',
      'retry-delay',
      'cacert',
      'cert',
      'key',
      'limit-rate',
      'max-redirs',
      'interface',
    ]
      .concat(['connect-to', 'ciphers', 'tls-max', 'noproxy', 'dns-servers', 'unix-socket', 'oauth2-bearer', 'rate'])
      .map(one => [`--${one}`, skip]),
  ),
}

/** Those that take none and matter. */
const flags: Readonly<Record<string, (draft: Draft) => void>> = {
  '-I': draft => {
    draft.method ??= 'HEAD'
  },
  '-G': draft => {
    draft.bodyInQuery = true
  },
}

const shortOf: Readonly<Record<string, string>> = {
  '--request': '-X',
  '--header': '-H',
  '--data': '-d',
  '--data-raw': '-d',
  '--data-ascii': '-d',
  '--data-binary': '-d',
  '--data-urlencode': '-d',
  '--form': '-F',
  '--form-string': '-F',
  '--upload-file': '-T',
  '--cookie': '-b',
  '--user-agent': '-A',
  '--referer': '-e',
  '--user': '-u',
  '--head': '-I',
  '--get': '-G',
  '--output': '-o',
  '--write-out': '-w',
  '--proxy': '-x',
  '--max-time': '-m',
  '--cookie-jar': '-c',
  '--dump-header': '-D',
  '--range': '-r',
}

function readCurl(text: string): WrittenRequest {
  const words = shellWords(text.replace(/^\s*\$\s*/, ''))
  if (!words) throw new Refusal(400, 'A quote stays open in this command.')
  const draft: Draft = { method: undefined, url: undefined, hasBody: false, bodyInQuery: false, body: [], headers: [] }
  const rest = words.slice(1)
  while (rest.length > 0) readWord(rest.shift()!, rest, draft)
  if (draft.url === undefined) throw new Refusal(400, 'This command names no URL.')
  const url = readUrl(draft.url)
  if (draft.bodyInQuery && draft.body.length > 0) {
    url.search += `${url.search === '' ? '?' : '&'}${draft.body.join('&')}`
  }
  const method = draft.method ?? (draft.hasBody && !draft.bodyInQuery ? 'POST' : 'GET')
  return finish(method, `${url.pathname}${url.search}`, [['host', url.host], ...draft.headers])
}

function readWord(word: string, rest: string[], draft: Draft): void {
  if (!word.startsWith('-') || word === '-') {
    draft.url ??= word
    return
  }
  if (word.startsWith('--')) {
    const name = shortOf[word] ?? word
    const option = Object.hasOwn(withValue, name) ? withValue[name] : undefined
    if (option) option(draft, takeValue(word, rest))
    else if (Object.hasOwn(flags, name)) flags[name]!(draft)
    return
  }
  // several may stand together, and a value directly behind: -sXPOST
  for (let i = 1; i < word.length; i++) {
    const name = `-${word[i]}`
    const option = Object.hasOwn(withValue, name) ? withValue[name] : undefined
    if (option) {
      option(draft, i + 1 < word.length ? word.slice(i + 1) : takeValue(name, rest))
      return
    }
    if (Object.hasOwn(flags, name)) flags[name]!(draft)
  }
}

function takeValue(name: string, rest: string[]): string {
  const value = rest.shift()
  if (value === undefined) throw new Refusal(400, `Nothing stands behind ${cut(name)}.`)
  return value
}

function readUrl(text: string): URL {
  const whole = /^[a-z][a-z\d+.-]*:\/\//i.test(text) ? text : `http://${text}`
  const url = URL.canParse(whole) ? new URL(whole) : undefined
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url
  throw new Refusal(400, `"${cut(text)}" is no URL of HTTP.`)
}

function readRaw(text: string): WrittenRequest {
  const [first = '', ...lines] = text.trimStart().split(/\r?\n/)
  const [method, target, protocol, ...more] = first.trim().split(/\s+/)
  if (!method || !target || more.length > 0 || (protocol !== undefined && !/^HTTP\/\d/i.test(protocol))) {
    throw new Refusal(400, 'Write a curl command, or METHOD path such as GET /orders, and a header on each line below.')
  }
  const end = lines.findIndex(line => line.trim() === '')
  const draft: Draft = { method, url: undefined, hasBody: false, bodyInQuery: false, body: [], headers: [] }
  for (const line of end < 0 ? lines : lines.slice(0, end)) header(draft, line)
  if (target.startsWith('/') || target === '*') return finish(method, target, draft.headers)
  const url = readUrl(target)
  return finish(method, `${url.pathname}${url.search}`, [['host', url.host], ...draft.headers])
}

/** Finishes a request: a later Host takes the place of the URL's; other headers that come twice are joined as Node joins them. */
function finish(method: string, target: string, lines: readonly [string, string][]): WrittenRequest {
  if (!token.test(method)) throw new Refusal(400, `"${cut(method)}" is no method.`)
  const headers = new Map<string, string>()
  for (const [name, value] of lines) {
    const earlier = name === 'host' ? undefined : headers.get(name)
    headers.set(name, earlier === undefined ? value : `${earlier}${name === 'cookie' ? '; ' : ', '}${value}`)
  }
  return { method: method.toUpperCase(), target, headers: Object.fromEntries(headers) }
}

function cut(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}
