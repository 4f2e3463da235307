for (const block of document.querySelectorAll(".commands")) {
  const button = document.createElement("button");
  const idle = "Copy";
  button.type = "button";
  button.textContent = idle;
  button.setAttribute("aria-label", "Copy: " + block.querySelector("pre").getAttribute("aria-label"));
  button.addEventListener("click", async () => {
    const code = block.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      getSelection().selectAllChildren(code);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = idle; }, 1500);
  });
  block.querySelector("h3").after(button);
}
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open]):not(.long)")];
  for (const one of opened) one.open = true;
});
addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
