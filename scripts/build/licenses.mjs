import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The packages of which code is inside a bundle, with their licenses. */
export class Licenses {
  #folders = new Set()

  addAll(output) {
    for (const { moduleIds = [] } of output) {
      for (const id of moduleIds) {
        const [, folder] = /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id.replaceAll('\\', '/')) ?? []
        if (folder !== undefined) this.#folders.add(folder)
      }
    }
  }

  write(file) {
    if (this.#folders.size === 0) return
    const parts = [...this.#folders].map(partOf).sort(([one], [other]) => (one < other ? -1 : 1))
    const text = parts.map(([name, license, words]) => `${name}\nLicense: ${license}\n\n${words}\n`)
    writeFileSync(
      file,
      `Code of these packages is inside the files of this one.\n\n${text.join(`\n${'-'.repeat(80)}\n\n`)}`,
    )
  }
}

function partOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  if (typeof license !== 'string') throw new Error(`${name} ${version} names no license in its package.json`)
  const file = readdirSync(folder).find(name => /^licen[cs]e/i.test(name))
  return [`${name} ${version}`, license, file === undefined ? '' : readFileSync(join(folder, file), 'utf8').trim()]
}
