export function luaModules(): { readonly path: string; readonly text: string }[]
