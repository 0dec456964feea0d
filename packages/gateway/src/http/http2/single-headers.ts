/** The headers that Node's HTTP/2 writes once only; of several values the first is taken, as Node's HTTP/1.1 reads them. */
const single: ReadonlySet<string> = new Set([
  'access-control-allow-credentials',
  'access-control-max-age',
  'access-control-request-method',
  'age',
  'authorization',
  'content-encoding',
  'content-language',
  'content-length',
  'content-location',
  'content-md5',
  'content-range',
  'content-type',
  'date',
  'dnt',
  'etag',
  'expires',
  'from',
  'host',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'last-modified',
  'location',
  'max-forwards',
  'proxy-authorization',
  'range',
  'referer',
  'retry-after',
  'tk',
  'upgrade-insecure-requests',
  'user-agent',
  'x-content-type-options',
])

export function isSingleHeader(name: string): boolean {
  return single.has(name)
}

/**
 * The largest block of headers that is sent. Limits of its own bound what is read, and thus what there is to send; beyond Node's
 * default of 64 KiB, Node would reset the stream and end the connection with all its other calls.
 */
export const maxSentHeaderBytes: number = 2 ** 26
