"use strict";

// Saves a figure as PNG, which the browser draws from its SVG. Where it may not, as on a page that was opened from a
// folder, the SVG opens instead.

(() => {
  const SCALE = 2;

  async function drawn(address) {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = SCALE * image.naturalWidth;
    canvas.height = SCALE * image.naturalHeight;
    const context = canvas.getContext("2d");
    context.fillStyle = "#ffffff";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  }

  async function save(button) {
    const address = button.dataset.bbPng;
    try {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await drawn(address));
      link.download = address.split("/").pop().replace(/\.svg$/, ".png");
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    } catch {
      location.assign(address);
    }
  }

  for (const button of document.querySelectorAll("[data-bb-png]")) {
    button.hidden = false;
    button.addEventListener("click", () => save(button));
  }
  // A menu closes when a reader goes on elsewhere, and by Escape.
  const menus = document.querySelectorAll("details.bb-share");
  document.addEventListener("click", (event) => {
    for (const menu of menus) {
      menu.open &&= menu.contains(event.target);
    }
  });
  for (const menu of menus) {
    menu.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && menu.open) {
        menu.open = false;
        menu.querySelector("summary").focus();
      }
    });
  }
})();
