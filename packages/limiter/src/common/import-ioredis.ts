import type * as Ioredis from 'ioredis'

/**
 * Loads ioredis, which the application installs if Diana is to open connections itself; throws with the remedy if it cannot be
 * used. Bundles are made without it: webpack and Turbopack leave this import to Node because of its comments, esbuild and
 * Rolldown because it stands in a `try` statement.
 */
export async function importIoredis(): Promise<Pick<typeof Ioredis, 'Redis' | 'Cluster'>> {
  const { Redis, Cluster } = await load()
  if (typeof Redis === 'function') return { Redis, Cluster }
  throw new Error('needs ioredis 5 or later, and an older one is installed; run: npm install ioredis@latest')
}

async function load(): Promise<Partial<typeof Ioredis> & Pick<typeof Ioredis, 'Cluster'>> {
  try {
    return await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ 'ioredis')
  } catch (cause) {
    throw new Error('needs the ioredis package; run: npm install ioredis', { cause })
  }
}
