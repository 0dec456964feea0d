import { join } from 'node:path'
import { defineConfig } from 'vite'
import { Licenses } from '../../scripts/build/licenses.mjs'
import { createFakeAdmin } from './fake-admin/fake-admin.ts'

/** Takes this many rules instead of the usual ones: DIANA_RULES=1000 npm run dev. */
const crowd = Number(process.env.DIANA_RULES ?? 0)

export default defineConfig({
  // relative addresses, so that the page may stand below any path
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2022',
    // the first that know light-dark()
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    // a strict Content-Security-Policy knows no data: addresses
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 600,
  },
  plugins: [
    {
      name: 'fake-admin',
      apply: 'serve',
      configureServer(server) {
        server.middlewares.use(createFakeAdmin({ crowd }))
      },
    },
    {
      name: 'licenses',
      apply: 'build',
      writeBundle({ dir }, output) {
        const licenses = new Licenses()
        licenses.addAll(Object.values(output))
        licenses.write(join(dir!, 'THIRD-PARTY-LICENSES.txt'))
      },
    },
  ],
})
